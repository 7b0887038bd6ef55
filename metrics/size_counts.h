// How many sets have how many classes.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace settrain {

/// [classes + 1]: sets of 0, 1, ..., `classes` classes. `sizes` [samples] int64 on any device, each at most `classes`.
std::vector<int64_t> size_counts(const at::Tensor& sizes, int64_t classes);

}  // namespace settrain
