// The softmax of a row of scores.
#pragma once

#include <cstdint>

#include "losses/kernels/instruction_set.h"

namespace settrain {

/// Writes exp(s_c - max s) / sum [classes]; T is float or double. Each is right to 3 + |s_c - max s| units in its last
/// place, and 0 where the exponential is below e^-87, or e^-708. Returns false where a score is NaN or infinite; what
/// is written then means nothing. classes >= 1.
SETTRAIN_IN_EVERY_SET(template <class T> bool softmax_row(const T* scores, int64_t classes, T* probabilities))

}  // namespace settrain
