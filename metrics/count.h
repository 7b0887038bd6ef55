// How many values of a row lie above a bound.
#pragma once

#include <cstdint>
#include <type_traits>

namespace settrain {

/// As wide as the values, so that the loops below become vector code. Rows have fewer than 2^31 values.
template <class T>
using Count = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;

/// The number of values > `bound`; a comparison with NaN is false.
template <class T>
int64_t count_above(const T* values, int64_t count, T bound) {
  Count<T> above = 0;
  for (int64_t i = 0; i < count; ++i) above += values[i] > bound;
  return above;
}

/// The number of values >= `bound`; a comparison with NaN is false.
template <class T>
int64_t count_at_least(const T* values, int64_t count, T bound) {
  Count<T> reached = 0;
  for (int64_t i = 0; i < count; ++i) reached += values[i] >= bound;
  return reached;
}

/// A multiple of what at::parallel_for gives a thread at least, in rows.
inline int64_t rows_per_task(int64_t classes) {
  return classes < 32768 ? 32768 / classes : 1;
}

}  // namespace settrain
