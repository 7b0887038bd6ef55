#include "models/model.h"

#include <c10/core/GradMode.h>

#include "models/layers.h"

namespace settrain {

int64_t Model::num_parameters() const {
  int64_t number = 0;
  for (const at::Tensor& parameter : parameters()) number += parameter.numel();
  return number;
}

void Model::recompute_activations() {
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* stage = module->as<Stage>()) stage->recompute_activations();
  }
}

void Model::set_channels_last(bool on) {
  const c10::NoGradGuard no_grad;
  const auto format = on ? at::MemoryFormat::ChannelsLast : at::MemoryFormat::Contiguous;
  for (at::Tensor& parameter : parameters()) {
    if (parameter.dim() == 4) parameter.set_data(parameter.contiguous(format));
  }
}

}  // namespace settrain
