// Small pictures as text, for a page that holds its images itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "datasets/dataset.h"

namespace settrain {

/// A PNG file (ISO/IEC 15948) of an image with 1 (grey) or 3 (RGB) channels. Throws std::invalid_argument for another
/// number of channels, an image without pixels, or pixels that are not as many as its size says.
std::string encode_png(const Image& image);

/// RFC 4648's base64, with padding.
std::string encode_base64(std::string_view bytes);

}  // namespace settrain
