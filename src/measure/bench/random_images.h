// The settings of a training run on random images, to measure how long steps take.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/registry.h"

namespace settrain {

/// Settings "key=value" of data and the rest for one batch of images that `model` was made for, but for those of `size`
/// pixels and `classes` where these are not 0. How fast a model trains says nothing of data.
std::vector<std::string> random_images(const ModelEntry& model, int64_t batch, int64_t size, int64_t classes);

}  // namespace settrain
