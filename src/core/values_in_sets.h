// How many classes sets may hold in all, where their mean size is given.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace settrain {

/// How many of the samples * classes values sets of average size `k` may hold: floor(k * samples), at most all. The
/// product gets 1e-9 on top, so that 2.3 * 10 counts as 23.
inline int64_t values_in_sets(double k, int64_t samples, int64_t classes) {
  if (k >= static_cast<double>(classes)) return samples * classes;
  return std::min(static_cast<int64_t>(std::floor(k * static_cast<double>(samples) + 1e-9)), samples * classes);
}

}  // namespace settrain
