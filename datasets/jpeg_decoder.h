// JPEG by libjpeg-turbo: the whole image, or not much more than a part of it.
#pragma once

#include <cstdint>
#include <span>

#include "datasets/dataset.h"

namespace settrain {

/// Whether the bytes begin as a JPEG does.
bool is_jpeg(std::span<const uint8_t> bytes);

/// Decodes at least the part that `choose` returns to `channels` = 3 (RGB) or 1 (grey), reusing the memory of `part`.
/// The pixels are those of the whole image, which is what Pillow makes of it: grey becomes R = G = B, and CMYK is
/// multiplied out. What lies below the part is not decoded, of what lies above or beside it as little as the format
/// allows. EXIF orientation is ignored. Throws std::runtime_error where the bytes are no JPEG that can be decoded.
void decode_jpeg(std::span<const uint8_t> bytes, int64_t channels, const ChoosePart& choose, ImagePart& part);

}  // namespace settrain
