// A config's data set, without the model that trains on it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/label_noise.h"
#include "datasets/registry.h"
#include "src/config/config.h"
#include "src/config/key.h"

namespace settrain {

struct ClassOptions {
  std::string superclasses, class_names;  // files, see read_class_table(); empty: the data set's own

  static config::Keys keys();
};

/// Gives the data set the superclasses and the names of these files, in place of its own. Both files call a class
/// by its key or by the data set's own name, see Dataset. Superclasses are numbered in the order of the classes. Throws
/// DataError naming file and line where a file does not fit the classes.
void apply_class_options(const ClassOptions& options, Dataset& dataset);

struct LoadedData {
  Dataset dataset;                    // training labels with their noise
  std::vector<int64_t> clean_labels;  // of the training split, before the noise
  LabelNoiseReport label_noise;
  int64_t not_compared = 0;  // files that may be in two splits or have two labels, too many to compare their contents
};

/// Loads the data set that `config` names, with the superclasses and names that the config gives its classes, the
/// calibration split that it asks for and every split's digest, and adds its label noise. Warns of images that are in
/// two splits. Throws ConfigError or DataError.
LoadedData load_data(const DatasetRegistry& registry, const config::Config& config);

}  // namespace settrain
