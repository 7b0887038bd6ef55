// A batch norm and a ReLU behind it, in one pass.
#pragma once

#include <c10/util/BFloat16.h>

#include <cstdint>

namespace settrain {

/// out[r][c] = max(0, scale[c] * x[r][c] + shift[c]) for each row r of `channels` numbers; NaN stays NaN. `stride` and
/// `out_stride`: numbers from a row to the next. For bfloat16 computed in float32 and rounded to the nearest, ties to
/// the even one.
void rectify_norm_rows(const float* x, int64_t stride, int64_t rows, int64_t channels, const float* scale,
                       const float* shift, float* out, int64_t out_stride);
void rectify_norm_rows(const c10::BFloat16* x, int64_t stride, int64_t rows, int64_t channels, const float* scale,
                       const float* shift, c10::BFloat16* out, int64_t out_stride);

}  // namespace settrain
