// Everything a config can name, in one place.
#pragma once

#include "datasets/registry.h"
#include "losses/loss.h"
#include "metrics/metric.h"
#include "models/registry.h"
#include "src/optim/optimizer.h"

namespace settrain {

struct Registries {
  DatasetRegistry datasets{"data set"};
  ModelRegistry models{"model"};
  LossRegistry losses{"loss"};
  MetricRegistry metrics{"metric"};
  OptimizerRegistry optimizers{"optimizer"};
};

}  // namespace settrain
