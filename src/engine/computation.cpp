#include "src/engine/computation.h"

#include "models/autocast.h"
#include "models/model.h"

namespace settrain {
namespace {

// Measured (docs/benchmarks.md): oneDNN's convolutions on the CPU are faster with the channels last. cuDNN's use tensor
// cores so, which float32 without TF32 does not have.
bool channels_last_is_faster(const Computation& computation) {
  return computation.device.is_cpu() || computation.bf16;
}

}  // namespace

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
