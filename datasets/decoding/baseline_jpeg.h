// A faster decoder for the JPEGs that most photographs are.
#pragma once

// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE and size_t
#include <jpeglib.h>
// clang-format on

#include <cstdint>

#include "datasets/decoding/image.h"

namespace settrain::jpeg {

/// Decodes `box` of an image whose header libjpeg has just read to `channels` = 3 (RGB) or 1 (grey), to the bits of
/// libjpeg. False, with `image` in any state, where libjpeg has to decode: the file is progressive, arithmetically
/// coded, in several scans, of other colours than grey and YCbCr 4:4:4, 4:2:2 or 4:2:0, or at most four pixels wide;
/// its codes are damaged before the end of the part; the part is very large; or the processor lacks AVX2 or BMI2.
bool decode_baseline(const jpeg_decompress_struct& jpeg, const Box& box, int64_t channels, Image& image);

}  // namespace settrain::jpeg
