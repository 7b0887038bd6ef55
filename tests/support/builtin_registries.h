// Everything that the program registers, for tests.
#pragma once

#include "metrics/sets/rule_metrics.h"
#include "src/train/experiment_schema.h"

namespace settrain::test {

inline const Registries& builtin_registries() {
  static const Registries registries = [] {
    Registries all;
    register_builtin_datasets(all.datasets);
    register_builtin_models(all.models);
    register_builtin_losses(all.losses);
    register_builtin_metrics(all.metrics);
    register_set_metrics(all.metrics);
    register_builtin_optimizers(all.optimizers);
    return all;
  }();
  return registries;
}

}  // namespace settrain::test
