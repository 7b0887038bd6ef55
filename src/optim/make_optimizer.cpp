#include "src/optim/make_optimizer.h"

#include <algorithm>

#include "src/config/schema.h"

namespace settrain {
namespace {

constexpr const char* kBias = "bias";
constexpr const char* kNorm = "norm";

// Scales and biases.
std::set<std::string> of_norms(const Optimizer::Named& parameters) {
  const std::string weight = ".weight";
  std::set<std::string> names;
  for (const auto& [name, tensor] : parameters) {
    if (tensor.dim() != 1 || !name.ends_with(weight)) continue;
    names.insert(name);
    names.insert(name.substr(0, name.size() - weight.size()) + ".bias");
  }
  return names;
}

}  // namespace

config::Keys ParameterOptions::keys() {
  return {config::key("no_decay", &ParameterOptions::no_decay, {},
                      "Parameters that weight decay spares. norm: scales and biases of normalisation layers; bias: all "
                      "other biases.")
              .one_of({kBias, kNorm})
              .distinct(),
          config::key("head_lr_factor", &ParameterOptions::head_lr_factor, 1.0,
                      "The learning rate of the head as a multiple of the rate of all other parameters: above 1 for a "
                      "new head on pretrained weights.")
              .at_least(0)};
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

TrainedParameters trained_parameters(const ParameterOptions& options, const Optimizer::Named& parameters,
                                     const std::set<std::string>& head) {
  const auto spares = [&](const char* kind) { return std::ranges::count(options.no_decay, kind) > 0; };
  const std::set<std::string> norms = of_norms(parameters);
  TrainedParameters trained;
  for (const auto& [name, tensor] : parameters) {
    const bool spared = norms.contains(name) ? spares(kNorm) : name.ends_with(kBias) && spares(kBias);
    trained.push_back({name, tensor, head.contains(name) ? options.head_lr_factor : 1, !spared});
  }
  return trained;
}

std::unique_ptr<Optimizer> make_optimizer(const OptimizerEntry& entry, const config::Config& config,
                                          const Optimizer::Named& parameters, const std::set<std::string>& head) {
  return entry.make(config, trained_parameters(config.read<ParameterOptions>("optimizer"), parameters, head));
}

}  // namespace settrain
