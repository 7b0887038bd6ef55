// The program's optimizers, for tests.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/config/load.h"
#include "src/optim/optimizer.h"

namespace settrain::test {

inline const OptimizerRegistry& builtin_optimizers() {
  static const OptimizerRegistry registry = [] {
    OptimizerRegistry optimizers("optimizer");
    register_builtin_optimizers(optimizers);
    return optimizers;
  }();
  return registry;
}

inline config::Schema optimizer_schema() {
  return {{optimizer_section(builtin_optimizers())}, {optimizer_rule(builtin_optimizers())}};
}

/// The config of that optimizer, with settings such as "optimizer.momentum=0".
inline config::Config optimizer_config(const std::string& name, std::vector<std::string> settings = {}) {
  settings.push_back("optimizer.name=" + name);
  return config::load(optimizer_schema(), {}, settings);
}

inline std::unique_ptr<Optimizer> optimizer_of(const std::string& name, const TrainedParameters& parameters,
                                               const std::vector<std::string>& settings = {}) {
  return builtin_optimizers().at(name).make(optimizer_config(name, settings), parameters);
}

}  // namespace settrain::test
