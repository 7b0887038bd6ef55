// The inner loops of resizing, over rows of 8-bit pixels, without LibTorch.
#pragma once

#include <cstdint>

namespace settrain {

/// One output pixel of an axis: `count` input pixels from `first` on, with `weights` of 2^-22. Their sizes add up to
/// less than 2, so that sums fit 32 bits.
struct PixelTaps {
  int64_t first;
  const int32_t* weights;
  int32_t count;
};

/// Resizes along rows: out[r][i] is the weighted sum, for each channel, of the pixels of rows[r] that taps[i] lists, i
/// in [0, count), rounded to 8 bits. `out` is [num_rows, count, channels]; `count` is at least 1, `channels` 1 or 3.
/// The taps' first pixels do not decrease. Nothing behind the last pixel that they list is read.
void resize_rows(const uint8_t* const* rows, int64_t num_rows, const PixelTaps* taps, int64_t count, int64_t channels,
                 uint8_t* out);

/// Resizes across rows: out[j], j in [0, length), is the sum of weights[k] rows[k][j] over k in [0, count), rounded to
/// 8 bits.
void mix_rows(const uint8_t* const* rows, const int32_t* weights, int32_t count, int64_t length, uint8_t* out);

}  // namespace settrain
