// From pixels to an image file.
#pragma once

#include <cstdint>
#include <vector>

#include "datasets/dataset.h"

namespace settrain {

/// The bytes of a PNG file of an image. Throws std::invalid_argument where it has neither 1 (grey) nor 3 (RGB)
/// channels; Error in a build without image files (no_image_decoder.cpp).
std::vector<uint8_t> encode_png(const Image& image);

}  // namespace settrain
