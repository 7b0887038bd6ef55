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
  std::string superclasses{}, class_names{};  // files, see read_class_table(); empty: the data set's own
  std::string taxonomy{};                     // a file, see read_taxonomy(); empty: none
  config::Texts only_superclasses{};          // the superclasses that are kept; empty: all
  double superclass_share = 1;                // of the superclasses, kept
  int64_t superclass_seed = 1;

  static config::Keys keys();
};

/// Refuses a list of superclasses beside a share of them, a seed without a share, and a taxonomy beside superclasses.
void superclass_rule(const config::Config& config);

/// Gives the data set the superclasses, the taxonomy and the names of these files, in place of its own. Both files call
/// a class by its key or by the data set's own name, see Dataset. Superclasses are numbered in the order of the
/// classes. Throws DataError naming file and line where a file does not fit the classes.
void apply_class_options(const ClassOptions& options, Dataset& dataset);

/// Throws KeyError for the key `path` that names each of `names` which is not among `known`, with the nearest that is.
void check_superclass_names(const std::string& path, const config::Texts& names, const std::vector<std::string>& known);

/// The same for the names that the key `path` of the config has, before the images are read. Nothing is checked where
/// the superclasses are not known before that.
void check_known_superclasses(const DatasetRegistry& registry, const config::Config& config, const std::string& path);

/// Keeps the classes of the superclasses `only_superclasses`, or of a share of all superclasses (rounded, at least one)
/// that the seed draws, and their images, in all splits. Whole superclasses stay, so that the confusions within them do
/// (Garcin 2023, section 3.2.2). The classes that are left are numbered anew, in their order: a classifier has only
/// these. An image with several labels keeps those that are left. Images keep their ids. Throws KeyError where there
/// are no such superclasses, where a split is left empty, and where P(y | x) is known, which would no longer hold.
void keep_superclasses(const ClassOptions& options, Dataset& dataset);

struct LoadedData {
  Dataset dataset;                    // training labels with their noise
  std::vector<int64_t> clean_labels;  // of the training split, before the noise
  LabelNoiseReport label_noise;
  int64_t not_compared = 0;  // files that may be in two splits or have two labels, too many to compare their contents
};

/// Loads the data set that `config` names, with the superclasses and names that the config gives its classes, the
/// superclasses that it keeps, the calibration split that it asks for and every split's digest, and adds its label
/// noise. Warns of images that are in two splits. Throws ConfigError or DataError.
LoadedData load_data(const DatasetRegistry& registry, const config::Config& config);

}  // namespace settrain
