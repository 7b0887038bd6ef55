// Every key of a training run.
#pragma once

#include "src/config/schema.h"
#include "src/train/registries.h"

namespace settrain {

/// The schema of a config file for these data sets, models, losses and metrics.
config::Schema experiment_schema(const Registries& registries);

}  // namespace settrain
