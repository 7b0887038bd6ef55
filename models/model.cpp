#include "models/model.h"

#include <c10/core/GradMode.h>
#include <fnmatch.h>

#include <algorithm>
#include <stdexcept>

#include "models/adapters.h"
#include "models/heads.h"
#include "models/layers.h"
#include "models/model_options.h"
#include "models/named_tensors.h"

namespace settrain {
namespace {

// Whether the pattern, with the shell's *, ? and [], is that of a dotted name or of its first words.
bool fits_pattern(const std::string& name, const std::string& pattern) {
  for (size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1)) {
    if (fnmatch(pattern.c_str(), name.substr(0, end).c_str(), FNM_NOESCAPE) == 0) return true;
  }
  return fnmatch(pattern.c_str(), name.c_str(), FNM_NOESCAPE) == 0;
}

// Names of the parameters of the modules of these kinds.
template <class... Kinds>
std::set<std::string> parameters_within(const Model& model) {
  std::set<std::string> names;
  for (const auto& module : model.named_modules("", /*include_self=*/false)) {
    if (!(module.value()->as<Kinds>() || ...)) continue;
    for (const auto& parameter : module.value()->named_parameters()) {
      names.insert(module.key() + "." + parameter.key());
    }
  }
  return names;
}

}  // namespace

ModelOutput Model::forward(const at::Tensor& x) {
  return classify(x.dim() == 2 ? x : features(x));
}

int64_t Model::num_parameters() const {
  int64_t number = 0;
  for (const at::Tensor& parameter : parameters()) number += parameter.numel();
  return number;
}

int64_t Model::num_trained_parameters() const {
  int64_t number = 0;
  for (const at::Tensor& parameter : parameters()) number += parameter.requires_grad() ? parameter.numel() : 0;
  return number;
}

std::set<std::string> Model::head_parameters() const {
  return parameters_within<Head>(*this);
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

std::set<std::string> Model::parameters_of(const std::string& part) const {
  const std::set<std::string> head = head_parameters();
  if (part == ModelOptions::kHead) return head;
  std::set<std::string> of_kind;
  if (part == ModelOptions::kNorm) of_kind = parameters_within<BatchNorm, LayerNorm>(*this);
  if (part == ModelOptions::kAdapter) of_kind = parameters_within<Adapter>(*this);
  std::set<std::string> names;
  for (const auto& parameter : named_parameters()) {
    const std::string& name = parameter.key();
    if (head.contains(name)) continue;
    if (part == ModelOptions::kBody || of_kind.contains(name) || fits_pattern(name, part)) names.insert(name);
  }
  return names;
}

std::vector<std::string> Model::names_of_parts() const {
  std::set<std::string> names{ModelOptions::kBody, ModelOptions::kHead, ModelOptions::kNorm};
  if (!parameters_of(ModelOptions::kAdapter).empty()) names.insert(ModelOptions::kAdapter);
  for (const std::string& name : parameters_of(ModelOptions::kBody)) {
    for (size_t end = name.find('.'); end != std::string::npos; end = name.find('.', end + 1)) {
      names.insert(name.substr(0, end));
    }
    names.insert(name);
  }
  return {names.begin(), names.end()};
}

void Model::train_only(const std::vector<std::string>& parts) {
  std::set<std::string> trained;
  for (const std::string& part : parts) trained.merge(parameters_of(part));
  for (auto& parameter : named_parameters()) {
    if (!trained.contains(parameter.key())) parameter.value().set_requires_grad(false);
  }
  frozen_.clear();
  for (const auto& module : modules(/*include_self=*/false)) {
    const std::vector<at::Tensor> own = module->parameters();
    if (!own.empty() && std::ranges::none_of(own, &at::Tensor::requires_grad)) frozen_.push_back(module);
  }
  train(is_training());
}

void Model::train(bool on) {
  if (on && form_ != InferenceForm::kExact) throw std::logic_error("a model that is prepared to answer is not trained");
  Module::train(on);
  for (const auto& module : frozen_) module->train(false);
}

void Model::prepare(InferenceForm form) {
  if (form != InferenceForm::kExact) eval();
  form_ = form;
  for (const auto& module : modules(/*include_self=*/false)) {
    if (auto* layer = module->as<Layer>()) layer->prepare(form);
  }
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
