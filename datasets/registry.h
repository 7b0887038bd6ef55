// How a data set becomes something a config can name.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "datasets/dataset.h"
#include "src/config/config.h"
#include "src/core/registry.h"

namespace settrain {

/// `keys` are the keys of the section `data` that only this data set has. `make` reads them from
/// config.read<Options>("data") and loads the data; it throws DataError that says what is missing, where it looked and
/// where it comes from.
struct DatasetEntry {
  std::string name;
  std::string help;
  config::Keys keys;
  std::function<Dataset(const config::Config&)> make;
};

using DatasetRegistry = Registry<DatasetEntry>;

/// Adds every data set of this folder.
void register_builtin_datasets(DatasetRegistry& registry);

}  // namespace settrain
