#include "src/optim/optimizer.h"

#include "src/config/variants.h"

namespace settrain {

Optimizer::Optimizer(const Named& parameters) {
  for (const auto& [name, parameter] : parameters) {
    names_.push_back(name);
    parameters_.push_back(parameter);
  }
}

void Optimizer::zero_grad() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

Optimizer::Named Optimizer::named(const std::string& kind, const std::vector<at::Tensor>& tensors) const {
  Named all;
  for (size_t i = 0; i < names_.size(); ++i) all.emplace_back(kind + "." + names_[i], tensors[i]);
  return all;
}

config::Section optimizer_section(const OptimizerRegistry& registry) {
  return {"optimizer", "The optimizer.", {}, "name", "sgd", config::variants_of(registry)};
}

config::Rule optimizer_rule(const OptimizerRegistry& registry) {
  return [&registry](const config::Config& config) {
    const OptimizerEntry& entry = registry.at(config.get<std::string>("optimizer.name"));
    if (entry.rule) entry.rule(config);
  };
}

}  // namespace settrain
