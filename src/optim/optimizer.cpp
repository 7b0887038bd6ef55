#include "src/optim/optimizer.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <cmath>

#include "src/config/schema.h"

namespace settrain {
namespace {

constexpr const char* kBias = "bias";
constexpr const char* kNorm = "norm";
constexpr const char* kOneDimensional = "one_dimensional";
constexpr const char* kToken = "token";

// Keys that every optimizer has: which parameters are trained otherwise than the rest.
struct ParameterOptions {
  config::Texts no_decay;
  double head_lr_factor = 1, layer_decay = 1;

  static config::Keys keys() {
    return {config::key("no_decay", &ParameterOptions::no_decay, {},
                        "Parameters that weight decay spares. norm: scales and biases of normalisation layers; bias: "
                        "all other biases; one_dimensional: everything with one value a channel, which is both of them "
                        "and the scales of layers; token: tokens and position embeddings of vision transformers. "
                        "Fine-tuning usually spares [one_dimensional, token].")
                .one_of({kBias, kNorm, kOneDimensional, kToken})
                .distinct(),
            config::key("head_lr_factor", &ParameterOptions::head_lr_factor, 1.0,
                        "The learning rate of the head as a multiple of the rate of all other parameters: above 1 for "
                        "a new head on pretrained weights.")
                .at_least(0),
            config::key("layer_decay", &ParameterOptions::layer_decay, 1.0,
                        "Learning rates that fall from the head to the images, for fine-tuning: a layer's rate is this "
                        "times that of the layer above it, and the head's is optimizer.lr. A layer is a block of the "
                        "network; the first layers have the smallest rates. 0.65 to 0.9 is usual for vision "
                        "transformers; 1 gives all layers one rate.")
                .above(0)
                .at_most(1)};
  }
};

// Names of the scales and biases of normalisation layers.
std::set<std::string> norm_parameters(const Optimizer::Named& parameters) {
  const std::string weight = ".weight";
  std::set<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.dim() != 1 || !name.ends_with(weight)) continue;
    names.insert(name);
    names.insert(name.substr(0, name.size() - weight.size()) + ".bias");
  }
  return names;
}

// Whether it has one value a channel: [channels], or [channels, 1, 1] as the scales of ConvNeXt's layers.
bool is_one_dimensional(const at::Tensor& tensor) {
  return tensor.dim() <= 1 || (tensor.dim() == 3 && tensor.size(1) == 1 && tensor.size(2) == 1);
}

bool is_token(const at::Tensor& tensor) {
  return tensor.dim() == 3 && tensor.size(0) == 1;
}

}  // namespace

void Optimizer::zero_grad() {
  for (TrainedParameter& parameter : parameters_) parameter.tensor.mutable_grad().reset();
}

std::vector<at::Tensor> Optimizer::parameters() const {
  std::vector<at::Tensor> tensors;
  for (const TrainedParameter& parameter : parameters_) tensors.push_back(parameter.tensor);
  return tensors;
}

std::vector<at::Tensor> Optimizer::Group::pick(const std::vector<at::Tensor>& all) const {
  std::vector<at::Tensor> picked;
  for (const size_t member : members) picked.push_back(all[member]);
  return picked;
}

std::vector<Optimizer::Group> Optimizer::groups() const {
  std::vector<Group> groups;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    const TrainedParameter& parameter = parameters_[i];
    if (!parameter.tensor.grad().defined()) continue;
    auto group = std::find_if(groups.begin(), groups.end(), [&](const Group& other) {
      return other.lr_factor == parameter.lr_factor && other.decays == parameter.decays;
    });
    if (group == groups.end()) group = groups.insert(group, {parameter.lr_factor, parameter.decays, {}, {}, {}});
    group->members.push_back(i);
    group->parameters.push_back(parameter.tensor);
    group->gradients.push_back(parameter.tensor.grad());
  }
  return groups;
}

std::vector<at::Tensor> Optimizer::zeros() const {
  std::vector<at::Tensor> tensors;
  for (const TrainedParameter& parameter : parameters_) tensors.push_back(at::zeros_like(parameter.tensor));
  return tensors;
}

Optimizer::Named Optimizer::named(const std::string& kind, const std::vector<at::Tensor>& tensors) const {
  Named all;
  for (size_t i = 0; i < parameters_.size(); ++i) all.emplace_back(kind + "." + parameters_[i].name, tensors[i]);
  return all;
}

void register_builtin_optimizers(OptimizerRegistry& registry) {
  registry.add(sgd_entry());
  registry.add(adamw_entry());
}

config::Section optimizer_section(const OptimizerRegistry& registry) {
  return {"optimizer", "The optimizer.", ParameterOptions::keys(), "name", "sgd", config::variants_of(registry)};
}

config::Rule optimizer_rule(const OptimizerRegistry& registry) {
  return [&registry](const config::Config& config) {
    const OptimizerEntry& entry = registry.at(config.get<std::string>("optimizer.name"));
    if (entry.rule) entry.rule(config);
  };
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerEntry& entry, const config::Config& config,
                                          const Optimizer::Named& parameters, const ParameterPlaces& places) {
  const auto options = config.read<ParameterOptions>("optimizer");
  const auto spares = [&](const char* kind) { return std::ranges::count(options.no_decay, kind) > 0; };
  const std::set<std::string> norms = norm_parameters(parameters);
  TrainedParameters trained;
  for (const auto& [name, tensor] : parameters) {
    const bool spared = (norms.contains(name) ? spares(kNorm) : name.ends_with(kBias) && spares(kBias)) ||
                        (is_one_dimensional(tensor) && spares(kOneDimensional)) || (is_token(tensor) && spares(kToken));
    const auto place = places.layers_below_head.find(name);
    const auto below = static_cast<double>(place == places.layers_below_head.end() ? 0 : place->second);
    const double factor = std::pow(options.layer_decay, below);
    trained.push_back({name, tensor, places.head.contains(name) ? options.head_lr_factor * factor : factor, !spared});
  }
  return entry.make(config, trained);
}

at::Tensor clip_gradients(std::span<const at::Tensor> parameters, double max_norm) {
  c10::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  if (gradients.empty()) return {};
  const at::Tensor norm = at::stack(at::_foreach_norm(gradients)).norm();
  at::_foreach_mul_(gradients, norm.reciprocal().mul(max_norm).clamp_max(1.0));
  return norm;
}

}  // namespace settrain
