#include "models/model.h"

#include <c10/core/GradMode.h>

#include <algorithm>

#include "models/heads.h"
#include "models/layers.h"

namespace settrain {
namespace {

// Whether a dotted name is `part` or lies inside it.
bool is_part_of(const std::string& name, const std::string& part) {
  return name.starts_with(part) && (name.size() == part.size() || name[part.size()] == '.');
}

}  // namespace

int64_t Model::num_parameters() const {
  int64_t number = 0;
  for (const at::Tensor& parameter : parameters()) number += parameter.numel();
  return number;
}

std::set<std::string> Model::head_parameters() const {
  std::set<std::string> names;
  for (const auto& module : named_modules("", /*include_self=*/false)) {
    if (!module.value()->as<Head>()) continue;
    for (const auto& parameter : module.value()->named_parameters()) {
      names.insert(module.key() + "." + parameter.key());
    }
  }
  return names;
}

std::map<std::string, int64_t> Model::layers_below_head() const {
  const std::vector<std::vector<std::string>> all = layers();
  std::map<std::string, int64_t> below;
  for (const auto& parameter : named_parameters()) {
    const auto is_inside = [&](const std::string& part) { return is_part_of(parameter.key(), part); };
    const auto own =
        std::ranges::find_if(all, [&](const auto& parts) { return std::ranges::any_of(parts, is_inside); });
    below[parameter.key()] = all.end() - own;
  }
  return below;
}

void Model::freeze(bool body, bool head) {
  const std::set<std::string> of_head = head_parameters();
  for (auto& parameter : named_parameters()) {
    if (of_head.contains(parameter.key()) ? head : body) parameter.value().set_requires_grad(false);
  }
  body_is_frozen_ = body;
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
