// The total size of sets whose average size is given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace settrain {

/// The number of classes that sets of average size `k` may hold in all, out of samples * classes: floor(k * samples),
/// at most all. The product gets 1e-9 on top, so that 2.3 * 10 counts as 23.
inline int64_t values_in_sets(double k, int64_t samples, int64_t classes) {
  if (k >= static_cast<double>(classes)) return samples * classes;
  return std::min(static_cast<int64_t>(std::floor(k * static_cast<double>(samples) + 1e-9)), samples * classes);
}

}  // namespace settrain
