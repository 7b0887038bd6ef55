// The optimizer that a config asks for.
#pragma once

#include <memory>
#include <set>
#include <string>

#include "src/config/schema.h"
#include "src/optim/optimizer.h"

namespace settrain {

/// Keys that every optimizer has: which parameters are trained otherwise than the rest.
struct ParameterOptions {
  config::Texts no_decay;
  double head_lr_factor = 1;

  static config::Keys keys();
};

/// The section `optimizer` of a config: those keys, and the registry's optimizers with theirs.
config::Section optimizer_section(const OptimizerRegistry& registry);

/// The rule of the optimizer that a config names. `registry` outlives it.
config::Rule optimizer_rule(const OptimizerRegistry& registry);

/// `head`: the names of those that are the head's. A normalisation layer is known by its one-dimensional `weight`, and
/// the `bias` beside it is its own.
TrainedParameters trained_parameters(const ParameterOptions& options, const Optimizer::Named& parameters,
                                     const std::set<std::string>& head);

std::unique_ptr<Optimizer> make_optimizer(const OptimizerEntry& entry, const config::Config& config,
                                          const Optimizer::Named& parameters, const std::set<std::string>& head);

}  // namespace settrain
