#include "src/train/computation.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>

#include "models/autocast.h"
#include "models/model.h"

namespace settrain {
namespace {

// On the CPU oneDNN's convolutions are, as measured (docs/benchmarks.md). On a GPU it is what cuDNN's tensor cores
// want, which float32 without TF32 does not use.
bool channels_last_is_faster(const Computation& computation) {
  return computation.device.is_cpu() || computation.bf16;
}

at::Tensor per_channel(const std::vector<float>& values, at::Device device) {
  at::Tensor tensor = at::empty({1, std::ssize(values), 1, 1}, at::kFloat);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor.to(device);
}

// To the bits of what the loader makes for the CPU, which rounds to bf16 there, where on a GPU autocast does. By
// tensors, since a division by a number would multiply by its inverse on a GPU.
at::Tensor normalised(const at::Tensor& bytes, const Computation& computation) {
  const at::Tensor most = at::full({1}, 255.0F, computation.mean.options());
  const at::Tensor numbers = bytes.to(at::kFloat).div_(most).sub_(computation.mean).div_(computation.std);
  return computation.device.is_cpu() && computation.bf16 ? numbers.to(at::kBFloat16) : numbers;
}

}  // namespace

bool bf16_is_emulated(at::Device device) {
#ifdef __x86_64__
  return device.is_cpu() && !__builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

void forbid_tf32() {
  at::globalContext().setAllowTF32CuDNN(false);
  at::globalContext().setAllowTF32CuBLAS(false);
}

std::string Computation::describe() const {
  return device.str() + (bf16 ? ", bf16" : ", float32") + (channels_last ? ", channels last" : ", channels first");
}

PixelFormat Computation::pixel_format() const {
  if (device.is_cuda()) return {PixelType::kByte, channels_last};
  return {bf16 ? PixelType::kBFloat16 : PixelType::kFloat, channels_last};
}

Computation make_computation(const TrainOptions& options, at::Device device, const Normalisation& normalisation) {
  forbid_tf32();
  Computation computation{device, options.precision == "bf16", options.channels_last == "true"};
  if (device.is_cpu() || at::hasCUDA()) {
    computation.mean = per_channel(normalisation.mean, device);
    computation.std = per_channel(normalisation.std, device);
  }
  if (options.channels_last == "auto") computation.channels_last = channels_last_is_faster(computation);
  return computation;
}

at::Tensor as_input(const at::Tensor& images, const Computation& computation) {
  const auto format = computation.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const at::Tensor input = images.to(computation.device, /*non_blocking=*/true).contiguous(format);
  return input.scalar_type() == at::kByte ? normalised(input, computation) : input;
}

ModelOutput forward(Model& model, const at::Tensor& images, const Computation& computation) {
  const Autocast autocast(computation.device.type(), computation.bf16);
  return model.forward(as_input(images, computation));
}

}  // namespace settrain
