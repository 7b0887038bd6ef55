// From an image file to pixels.
#pragma once

#include <cstdint>
#include <filesystem>

#include "datasets/dataset.h"

namespace settrain {

/// Decodes a JPEG, PNG, BMP, WebP or TIFF file to `channels` = 3 (RGB) or 1 (grey). Transparency is dropped, deeper
/// pixels become 8-bit, EXIF orientation is ignored. Throws DataError, naming the file, where it cannot be read, is no
/// such image, or is cut short.
Image decode_image(const std::filesystem::path& file, int64_t channels);

}  // namespace settrain
