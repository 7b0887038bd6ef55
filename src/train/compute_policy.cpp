#include "src/train/compute_policy.h"

#include <ATen/Context.h>
#include <ATen/detail/CUDAHooksInterface.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>

#include <algorithm>
#include <cstdlib>

#include "models/autocast.h"
#include "models/model.h"
#include "src/core/error.h"
#include "src/core/process.h"
#include "src/core/random.h"
#include "src/cuda/cuda_library.h"
#include "src/train/compute_threads.h"

namespace settrain {
namespace {

// Advice where a GPU was asked for and none is there.
std::string no_gpu_advice() {
#ifdef SETTRAIN_HAS_CUDA
  if (!why_no_gpu().empty()) return why_no_gpu();
  return "no GPU was found; run on --device cpu, or check the driver with nvidia-smi";
#else
  return "this build has no CUDA; run on --device cpu, or build with scripts/setup --cuda";
#endif
}

// On the CPU oneDNN's convolutions are faster with the channels last, as measured (docs/benchmarks.md). On a GPU only
// bf16 gains by it: cuDNN's tensor cores want that layout, and float32 without TF32 does not use them.
bool channels_last_is_faster(const ComputePolicy& policy) {
  return policy.device.is_cpu() || policy.bf16;
}

at::Tensor per_channel(const std::vector<float>& values, at::Device device) {
  at::Tensor tensor = at::empty({1, std::ssize(values), 1, 1}, at::kFloat);
  std::copy(values.begin(), values.end(), tensor.mutable_data_ptr<float>());
  return tensor.to(device);
}

// Gives the bits of the loader's normalisation. On the CPU it rounds to bf16 as the loader does; on a GPU autocast
// rounds. Divides by tensors, since a division by a number would multiply by its inverse on a GPU.
at::Tensor normalised(const at::Tensor& bytes, const ComputePolicy& policy) {
  const at::Tensor most = at::full({1}, 255.0F, policy.mean.options());
  const at::Tensor numbers = bytes.to(at::kFloat).div_(most).sub_(policy.mean).div_(policy.std);
  return policy.device.is_cpu() && policy.bf16 ? numbers.to(at::kBFloat16) : numbers;
}

}  // namespace

at::Device find_device(const std::string& name) {
  if (name == "auto") return at::Device(has_gpu() ? at::kCUDA : at::kCPU);
  at::Device device(at::kMeta);
  try {
    device = at::Device(name);
  } catch (const c10::Error&) {  // no device's name
  }
  if (!device.is_cpu() && !device.is_cuda())
    throw ConfigError("--device " + name + ": expected auto, cpu, cuda or cuda:N");
  if (device.is_cpu()) return device;
  const int64_t gpus = has_gpu() ? at::detail::getCUDAHooks().deviceCount() : 0;
  if (gpus == 0) throw ConfigError("--device " + name + ": " + no_gpu_advice());
  if (device.index() >= gpus) {
    throw ConfigError("--device " + name + ": there are " + std::to_string(gpus) + " GPUs, numbered from 0");
  }
  return device;
}

void prepare_process(const config::Config& config, at::Device device) {
  set_compute_threads(config.get<int64_t>("run.threads"));
  const config::Switch wanted = config.read<TrainOptions>("train").deterministic;
  const bool deterministic = wanted == config::Switch::kAuto ? device.is_cpu() : wanted == config::Switch::kOn;
  at::globalContext().setDeterministicAlgorithms(deterministic, /*warn_only=*/false);
  at::globalContext().setDeterministicCuDNN(deterministic);
  at::globalContext().setBenchmarkCuDNN(!deterministic);
  // Deterministic mode would also fill every new tensor, with threads of its own, even within the loader's. Nothing
  // here reads what it has not written.
  at::globalContext().setDeterministicFillUninitializedMemory(false);
  // cuBLAS repeats its results only with a workspace of fixed size, which it reads when it is first used.
  if (deterministic && device.is_cuda()) setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", /*overwrite=*/0);
  if (device.is_cpu()) keep_freed_memory();
}

void wait_for(at::Device device) {
  if (device.is_cuda()) at::detail::getCUDAHooks().deviceSynchronize(device.index());
}

void seed_aten(uint64_t seed, SeedUse use, int64_t step, int64_t micro_batch) {
  const auto words =
      random_words(seed, Stream::kAten, 0, use, static_cast<uint32_t>(micro_batch), static_cast<uint32_t>(step));
  at::manual_seed((uint64_t{words[0]} << 32) | words[1]);
}

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

std::string ComputePolicy::describe() const {
  return device.str() + (bf16 ? ", bf16" : ", float32") + (channels_last ? ", channels last" : ", channels first");
}

PixelFormat ComputePolicy::pixel_format() const {
  if (device.is_cuda()) return {PixelType::kByte, channels_last};
  return {bf16 ? PixelType::kBFloat16 : PixelType::kFloat, channels_last};
}

ComputePolicy make_compute_policy(const TrainOptions& options, at::Device device, const Normalisation& normalisation) {
  forbid_tf32();
  ComputePolicy policy{device, options.precision == "bf16", options.channels_last == config::Switch::kOn};
  if (device.is_cpu() || at::hasCUDA()) {
    policy.mean = per_channel(normalisation.mean, device);
    policy.std = per_channel(normalisation.std, device);
  }
  if (options.channels_last == config::Switch::kAuto) policy.channels_last = channels_last_is_faster(policy);
  return policy;
}

at::Tensor as_input(const at::Tensor& images, const ComputePolicy& policy) {
  const bool has_pixels = images.dim() == 4;  // features have two dimensions
  const auto format =
      policy.channels_last && has_pixels ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  const at::Tensor input = images.to(policy.device, /*non_blocking=*/true).contiguous(format);
  return input.scalar_type() == at::kByte ? normalised(input, policy) : input;
}

ModelOutput forward(Model& model, const at::Tensor& images, const ComputePolicy& policy) {
  const Autocast autocast(policy.device.type(), policy.bf16);
  return model.forward(as_input(images, policy));
}

}  // namespace settrain
