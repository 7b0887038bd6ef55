// Everything that a config can name, and every key of a training run.
#pragma once

#include "datasets/registry.h"
#include "losses/loss.h"
#include "metrics/metric.h"
#include "models/registry.h"
#include "src/config/schema.h"
#include "src/optim/optimizer.h"

namespace settrain {

struct Registries {
  DatasetRegistry datasets{"data set"};
  ModelRegistry models{"model"};
  LossRegistry losses{"loss"};
  MetricRegistry metrics{"metric"};
  OptimizerRegistry optimizers{"optimizer"};
};

/// The schema of a config file for these data sets, models, losses and metrics.
config::Schema experiment_schema(const Registries& registries);

}  // namespace settrain
