// Random orders.
#pragma once

#include <cstdint>
#include <vector>

#include "src/core/streams.h"

namespace settrain {

/// The numbers 0 to n - 1 in an order drawn uniformly (Fisher and Yates' shuffle), a function of the arguments alone.
/// `step`, `block` and `position` tell apart the orders of one seed and stream: an epoch, a class. Throws
/// std::invalid_argument unless 0 <= n < 2^32.
std::vector<int64_t> permutation(int64_t n, uint64_t seed, Stream stream, uint32_t step = 0, uint32_t block = 0,
                                 uint32_t position = 0);

}  // namespace settrain
