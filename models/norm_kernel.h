// A batch norm and a ReLU behind it, in one pass.
#pragma once

#include <cstdint>

namespace settrain {

/// out[r][c] = max(0, scale[c] * x[r][c] + shift[c]) for each row r of `channels` numbers; NaN stays NaN. `stride` and
/// `out_stride`: numbers from a row to the next.
void rectify_norm_rows(const float* x, int64_t stride, int64_t rows, int64_t channels, const float* scale,
                       const float* shift, float* out, int64_t out_stride);

}  // namespace settrain
