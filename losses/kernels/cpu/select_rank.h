// Selection without a sort and without branches on the data: a bisection over the values, which counts how many are at
// least as large.
#pragma once

#include "losses/kernels/cpu/lanes.h"

namespace settrain {
namespace {

constexpr float kInfinity = __builtin_inff();

/// Copies a row of `classes` and fills it up to `size`, a multiple of the number of lanes, with -infinity. False where
/// it has a NaN.
template <class T>
SETTRAIN_ALWAYS_INLINE bool copy_row(const T* row, int64_t classes, int64_t size, T* copy) {
  const int64_t whole = classes / kLanesOf<T> * kLanesOf<T>;
  Lanes<MaskOf<T>> nan(0);
  for (int64_t j = 0; j < whole; j += kLanesOf<T>) {
    const Lanes<T> values = Lanes<T>::load(row + j);
    nan = nan | (values != values);
    values.store(copy + j);
  }
  for (int64_t j = whole; j < size; ++j) copy[j] = j < classes ? row[j] : -kInfinity;
  for (int64_t j = whole; j < size; j += kLanesOf<T>) {
    const Lanes<T> values = Lanes<T>::load(copy + j);
    nan = nan | (values != values);
  }
  return bits_of(nan) == 0;
}

// The functions below look at values[0 .. size); `size` is a multiple of the number of lanes.

/// How many are at least `least`.
template <class T>
SETTRAIN_ALWAYS_INLINE int64_t count_at_least(const T* values, int64_t size, T least) {
  Lanes<MaskOf<T>> counts(0);
  for (int64_t i = 0; i < size; i += kLanesOf<T>) counts = counts - (Lanes<T>::load(values + i) >= least);
  return sum_of(counts);
}

template <class T>
SETTRAIN_ALWAYS_INLINE T largest(const T* values, int64_t size) {
  Lanes<T> most(-kInfinity);
  for (int64_t i = 0; i < size; i += kLanesOf<T>) most = larger(most, Lanes<T>::load(values + i));
  return largest_of(most);
}

/// The least of the values that are at least `least`.
template <class T>
SETTRAIN_ALWAYS_INLINE T smallest_from(const T* values, int64_t size, T least) {
  Lanes<T> smallest(kInfinity);
  for (int64_t i = 0; i < size; i += kLanesOf<T>) {
    const Lanes<T> value = Lanes<T>::load(values + i);
    smallest = smaller(smallest, choose(value >= least, value, Lanes<T>(kInfinity)));
  }
  return smallest_of(smallest);
}

/// Integers in the order of the numbers, and back.
template <class T>
SETTRAIN_ALWAYS_INLINE MaskOf<T> place_of(T value) {
  MaskOf<T> bits;
  __builtin_memcpy(&bits, &value, sizeof bits);
  return bits >= 0 ? bits : -1 - (bits & static_cast<MaskOf<T>>(~kSignBit<T>));
}
template <class T>
SETTRAIN_ALWAYS_INLINE T at_place(MaskOf<T> place) {
  const auto bits = static_cast<MaskOf<T>>(place >= 0 ? place : (-1 - place) | static_cast<MaskOf<T>>(kSignBit<T>));
  T value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

/// The value of rank `rank` (1: the largest), or, with a slack, a number that at least `rank` and at most `rank` +
/// `slack` values reach, where ties allow that. `low`: a number that at least `rank` values reach. No NaN.
template <class T>
SETTRAIN_ALWAYS_INLINE T value_of_rank(const T* values, int64_t size, int64_t rank, T low, int64_t slack) {
  MaskOf<T> below = place_of(low), above = place_of(largest(values, size)) + 1;
  while (above - 1 > below) {
    const MaskOf<T> middle = (below & above) + ((below ^ above) >> 1);  // halfway, where the sum would overflow
    const T least = at_place<T>(middle);
    const int64_t count = count_at_least(values, size, least);
    if (count >= rank && count <= rank + slack) return slack > 0 ? least : smallest_from(values, size, least);
    (count >= rank ? below : above) = middle;
  }
  return at_place<T>(below);
}

/// The place of the value of rank `rank`, which equals `value`. Among equal values the lower class comes first.
SETTRAIN_ALWAYS_INLINE int64_t place_of_rank(const float* values, const int32_t* classes, int64_t size, int64_t rank,
                                             float value) {
  int64_t equal = 0, place = 0;
  for (int64_t i = 0; i < size; i += kLanes) {
    const uint32_t hits = bits_of(Floats::load(values + i) == value);
    if (hits == 0) continue;
    place = i + __builtin_ctz(hits);
    equal += __builtin_popcount(hits);
  }
  if (equal == 1) return place;
  int64_t ahead = rank - 1;  // how many of the equal ones come first
  for (int64_t i = 0; i < size; i += kLanes) ahead -= __builtin_popcount(bits_of(Floats::load(values + i) > value));
  int64_t below = -1, above = INT32_MAX;
  while (above - below > 1) {
    const int64_t middle = below + (above - below) / 2;
    int64_t count = 0;
    for (int64_t i = 0; i < size; ++i) count += values[i] == value && classes[i] <= middle;
    (count > ahead ? above : below) = middle;
  }
  for (int64_t i = 0; i < size; ++i) {
    if (values[i] == value && classes[i] == above) place = i;
  }
  return place;
}

}  // namespace
}  // namespace settrain
