// How a data set becomes something a config can name.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "datasets/data_facts.h"
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

/// What the program knows of a data set. It stands in the data set's own file, and nowhere else.
///
/// `keys` are the keys of the section `data` that only this data set has. `make` reads them from
/// config.read<Options>("data") and loads the data; it throws DataError that says what is missing, where it looked and
/// where it comes from. `facts` says what the data will be like, or nothing where the config does not tell; data of the
/// user's own have no such function.
struct DatasetEntry {
  std::string name;
  std::string help;
  config::Keys keys;
  std::function<Dataset(const config::Config&)> make;
  std::function<std::optional<DataFacts>(const config::Config&)> facts = {};
  std::vector<NamedNormalisation> statistics = {};  // that it adds to the choices of data.normalisation
  std::optional<Download> download = {};            // where it comes from; nothing for data that come from nowhere
};

using DatasetRegistry = Registry<DatasetEntry>;

/// Adds every data set of this folder.
void register_builtin_datasets(DatasetRegistry& registry);

}  // namespace settrain
