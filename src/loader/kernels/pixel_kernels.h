// The inner loops of operations on 8-bit pixels, without LibTorch. Pixels have 1 or 3 interleaved channels.
#pragma once

#include <cstdint>

namespace settrain {

/// Replaces each number by that of its channel's table: `tables` is [channels, 256].
void look_up(const uint8_t* tables, int64_t channels, int64_t num_pixels, uint8_t* pixels);

/// Adds to `counts` [channels, 256] how often each channel has each number.
void count_numbers(const uint8_t* pixels, int64_t channels, int64_t num_pixels, int64_t* counts);

/// The luma of pixels of three channels, as Pillow's convert("L"): `out` is [num_pixels].
void grey_of(const uint8_t* pixels, int64_t num_pixels, uint8_t* out);

/// pixels[j] becomes other[j] + factor (pixels[j] - other[j]) in float32, cut to [0, 255] and rounded down, as Pillow's
/// Image.blend.
void blend(const uint8_t* other, float factor, int64_t length, uint8_t* pixels);

/// Smooths a row of `width` pixels as Pillow's SMOOTH: the rounded mean of nine pixels of three rows, in which that in
/// the middle counts five times. The first and the last pixel stay as they are.
void smooth_row(const uint8_t* above, const uint8_t* row, const uint8_t* below, int64_t channels, int64_t width,
                uint8_t* out);

/// An affine map from pixels of the result to those of the source, in numbers of 2^-16: the middle of pixel (x, y)
/// comes from (x0 + xx x + xy y, y0 + yx x + yy y).
struct FixedAffine {
  int64_t x0, xx, xy, y0, yx, yy;
};

/// out[y][x], [height, width, channels], is the pixel of `image`, of the same size, in which the map's place lies;
/// black where that is beyond the image.
void warp(const uint8_t* image, int64_t height, int64_t width, int64_t channels, const FixedAffine& map, uint8_t* out);

}  // namespace settrain
