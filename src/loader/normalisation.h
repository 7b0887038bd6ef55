// Statistics with which pixels are centred and scaled, by name.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

/// none, cifar10, cifar100, fashion_mnist, imagenet.
std::vector<std::string> normalisation_names();

/// The statistics `name`, or the data set's usual ones where it is `auto`. Throws ConfigError where they are not for
/// the data set's number of channels.
Normalisation normalisation_for(const std::string& name, const Dataset& dataset);

}  // namespace settrain
