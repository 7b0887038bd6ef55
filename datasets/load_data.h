// A config's data set, without the model that trains on it.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/label_noise.h"
#include "datasets/registry.h"
#include "src/config/config.h"

namespace settrain {

struct LoadedData {
  Dataset dataset;                    // training labels with their noise
  std::vector<int64_t> clean_labels;  // of the training split, before the noise
  LabelNoiseReport label_noise;
};

/// Loads the data set that `config` names, with the superclasses and names that the config gives its classes and the
/// calibration split that it asks for, and adds its label noise. Throws ConfigError or DataError.
LoadedData load_data(const DatasetRegistry& registry, const config::Config& config);

}  // namespace settrain
