// Rows of pixels as normalised numbers, without LibTorch.
#pragma once

#include <cstdint>

namespace settrain {

/// Row `y` of an image: [width, channels] bytes. With `flip` it is written mirrored.
struct PixelRow {
  const uint8_t* pixels;
  int64_t y, height, width;
  bool flip;
};

inline constexpr int64_t kFewestPixels = 8;  // of a row that is normalised at once

/// How eight pixels of three channels become three vectors of eight numbers.
struct EightPixels {
  alignas(32) float mean[3][8] = {}, std[3][8] = {}, inverse_std[3][8] = {};  // of each number's channel
  /// Which byte becomes each number, of the first 16 of the pixels' 24 bytes and of the last 16; -1 for none. Not
  /// mirrored, and mirrored.
  struct Order {
    alignas(16) int8_t front[3][16] = {}, back[3][16] = {};
  };
  Order orders[2];
  bool channels_last = false;
};

/// `mean` and `std`: [3].
EightPixels eight_pixels(const float* mean, const float* std, bool channels_last);

/// Whether normalise_row() gives the bits of `table`, [3, 256], for every byte. False on processors without AVX2.
bool computes_all(const EightPixels& eight, const float* table);

/// Writes (v / 255 - mean) / std for each byte v of a row of at least kFewestPixels pixels of three channels into an
/// image [3, height, width], or [height, width, 3]; as float32, or rounded to the nearest bfloat16. Only where
/// computes_all().
void normalise_row(const PixelRow& row, const EightPixels& eight, float* image);
void normalise_row(const PixelRow& row, const EightPixels& eight, uint16_t* image);

}  // namespace settrain
