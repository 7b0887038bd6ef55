#include "models/model.h"

#include <c10/core/GradMode.h>

#include <set>

#include "models/heads.h"
#include "models/layers.h"

namespace settrain {

int64_t Model::num_parameters() const {
  int64_t number = 0;
  for (const at::Tensor& parameter : parameters()) number += parameter.numel();
  return number;
}

void Model::freeze(bool body, bool head) {
  std::set<void*> of_head;
  for (const auto& module : modules(/*include_self=*/false)) {
    if (!module->as<Head>()) continue;
    for (at::Tensor& parameter : module->parameters()) {
      of_head.insert(parameter.unsafeGetTensorImpl());
      if (head) parameter.set_requires_grad(false);
    }
  }
  body_is_frozen_ = body;
  for (at::Tensor& parameter : parameters()) {
    if (body && !of_head.contains(parameter.unsafeGetTensorImpl())) parameter.set_requires_grad(false);
  }
  train(is_training());
}

void Model::train(bool on) {
  Module::train(on && !body_is_frozen_);
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
