// The data sets that a config can name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/download.h"
#include "src/config/config.h"
#include "src/core/registry.h"

namespace settrain {

/// Statistics that data.normalisation can name.
struct NamedNormalisation {
  std::string name;
  Normalisation statistics;
};

/// The record that a data set's files have of an image beside its class. Texts are empty where they say nothing.
struct ImageRecord {
  std::string image;             // its file's name without the ending
  std::string class_key, split;  // the class' id or folder; "train", "val" or "test"
  std::string observation;       // photographs of one plant have it in common
  std::string organ, author, licence;
};

/// All that the program knows about a data set. It is written in the data set's own file, and nowhere else.
///
/// `keys` are the keys of the section `data` that only this data set has. `make` reads them with
/// config.read<Options>("data") and loads the data; it throws DataError that says what is missing, where it looked and
/// where the data come from. `facts` returns the sizes of the data before they are there, or nothing where the config
/// does not determine them; data sets of the user's own files have no such function.
struct DatasetEntry {
  std::string name;
  std::string help;
  config::Keys keys;
  std::function<Dataset(const config::Config&)> make;
  std::function<std::optional<DataFacts>(const config::Config&)> facts = {};
  std::vector<NamedNormalisation> statistics = {};  // choices of data.normalisation that it adds
  std::optional<Download> download = {};            // its source; none for the user's own data
  // The names of its superclasses, as far as they are known before the images are read, so that mistyped ones are
  // reported early.
  std::function<std::vector<std::string>(const config::Config&)> superclasses = {};
  // The records of its images; empty where the file that would hold them is not there.
  std::function<std::vector<ImageRecord>(const config::Config&)> records = {};
};

using DatasetRegistry = Registry<DatasetEntry>;

/// Adds every data set of this folder.
void register_builtin_datasets(DatasetRegistry& registry);

}  // namespace settrain
