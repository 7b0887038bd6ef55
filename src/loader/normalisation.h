// Statistics with which pixels are centred and scaled, by name.
#pragma once

#include <string>
#include <vector>

#include "datasets/registry.h"

namespace settrain {

/// What data.normalisation can name: auto, none, and what the data sets bring.
std::vector<std::string> normalisation_names(const DatasetRegistry& datasets);

/// The statistics `name`, or the data set's usual ones where it is `auto`. Throws ConfigError where they are not for
/// the data set's number of channels.
Normalisation normalisation_for(const DatasetRegistry& datasets, const std::string& name, const Dataset& dataset);

}  // namespace settrain
