// The softmax of a row of scores.
#pragma once

#include <cstdint>

#include "losses/kernels/instruction_set.h"

namespace settrain {

/// Writes exp(s_c - max s) / sum [classes]. Each is right to 3 + classes / 1000 + |s_c - max s| units in its last
/// place, and 0 where the exponential is below e^-708. The same scores in another order have the same probabilities to
/// the last bit. Returns false where a score is NaN or infinite; what is written then means nothing. 1 <= classes <
/// 2^22.
SETTRAIN_IN_EVERY_SET(bool softmax_row(const double* scores, int64_t classes, double* probabilities))

/// Sets of a softmax by float32 alone. With x_c, the logarithm of the probability of class c, right to
/// 1e-5 + 2e-9 * classes + 2e-7 * |x_c|: set[c] is whether x_c >= in_from[c]. Returns false, and `set` means nothing,
/// where an x_c lies between out_below[c] and in_from[c], or where a score is NaN or infinite. All are [classes].
SETTRAIN_IN_EVERY_SET(bool softmax_set(const float* scores, int64_t classes, const float* out_below,
                                       const float* in_from, bool* set))

}  // namespace settrain
