#include "src/engine/computation.h"

#include "models/autocast.h"
#include "models/model.h"

namespace settrain {
namespace {

// On the CPU oneDNN's convolutions are, as measured (docs/benchmarks.md). On a GPU it is what cuDNN's tensor cores
// want, which float32 without TF32 does not use.
bool channels_last_is_faster(const Computation& computation) {
  return computation.device.is_cpu() || computation.bf16;
}

}  // namespace

bool bf16_is_emulated(at::Device device) {
#ifdef __x86_64__
  return device.is_cpu() && !__builtin_cpu_supports("avx512bf16");
#else
  return false;
#endif
}

std::string Computation::describe() const {
  return device.str() + (bf16 ? ", bf16" : ", float32") + (channels_last ? ", channels last" : ", channels first");
}

Computation make_computation(const TrainOptions& options, at::Device device) {
  Computation computation{device, options.precision == "bf16", options.channels_last == "true"};
  if (options.channels_last == "auto") computation.channels_last = channels_last_is_faster(computation);
  return computation;
}

ModelOutput forward(Model& model, const at::Tensor& images, const Computation& computation) {
  const Autocast autocast(computation.device.type(), computation.bf16);
  const auto format = computation.channels_last ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  return model.forward(images.to(computation.device, /*non_blocking=*/true).contiguous(format));
}

}  // namespace settrain
