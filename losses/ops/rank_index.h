// Which class has a given rank.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

/// The index, along the last dimension of `values` [..., classes] float32 or float64, of the element with rank `rank`
/// in descending order (0: the largest); 0 <= rank < classes. Among equal values the lower index comes first. NaN
/// counts as larger than everything, as in at::sort. Returns [...] int64; no gradient.
at::Tensor rank_index(const at::Tensor& values, int64_t rank);

}  // namespace settrain
