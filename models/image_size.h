// Sizes of images that a model can take.
#pragma once

#include <cstdint>
#include <string_view>

#include "models/registry.h"

namespace settrain {

/// Throws KeyError for images of less than `least` pixels in height or width.
void check_least_size(std::string_view model, int64_t least, const ModelContext& images);

/// Throws KeyError for images that no number of squares of `patch` pixels fills, or that are not square.
void check_square_of_patches(std::string_view model, int64_t patch, const ModelContext& images);

}  // namespace settrain
