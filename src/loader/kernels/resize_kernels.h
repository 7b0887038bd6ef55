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

/// Along `num_rows` rows: out[r][i] is made of the pixels of rows[r] that taps[i] says, i in [0, count), each channel
/// for itself, rounded to 8 bits. `out` is [num_rows, count, channels]; `channels` is 1 or 3. May read one byte behind
/// the last pixel that is needed of a row.
void resize_rows(const uint8_t* const* rows, int64_t num_rows, const PixelTaps* taps, int64_t count, int64_t channels,
                 uint8_t* out);

/// Across rows: out[j], for j in [0, length), is made of rows[k][j] with weights[k], k in [0, count), rounded to 8
/// bits.
void mix_rows(const uint8_t* const* rows, const int32_t* weights, int32_t count, int64_t length, uint8_t* out);

}  // namespace settrain
