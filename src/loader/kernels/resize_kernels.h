// The loops of resizing, over rows of 8-bit pixels. Raw pointers and no LibTorch.
#pragma once

#include <cstdint>

namespace settrain {

/// One output pixel of an axis: `count` input pixels from `first` on, with `weights` of 2^-22.
struct PixelTaps {
  int64_t first;
  const int32_t* weights;
  int32_t count;
};

/// Along a row: out[i] is made of the pixels of `row` that taps[i] says, each channel for itself, rounded to 8 bits.
/// `channels` is 1 or 3. Reads up to one byte behind the last pixel that is needed; at least that must be there.
void resize_row(const uint8_t* row, const PixelTaps* taps, int64_t count, int64_t channels, uint8_t* out);

/// Across rows: out[j], for j in [0, length), is made of rows[k][j] with weights[k], k in [0, count), rounded to 8
/// bits.
void mix_rows(const uint8_t* const* rows, const int32_t* weights, int32_t count, int64_t length, uint8_t* out);

}  // namespace settrain
