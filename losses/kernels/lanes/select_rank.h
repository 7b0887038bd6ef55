// Selection without a sort and without branches on the data: a bisection over the values, which counts how many are at
// least as large.
#pragma once

#include "losses/kernels/lanes/lanes.h"

namespace settrain {
namespace {

constexpr float kInfinity = __builtin_inff();

/// What follows looks at values[0 .. size), `size` a multiple of 16.

/// How many are at least `least`.
SETTRAIN_ALWAYS_INLINE int64_t count_at_least(const float* values, int64_t size, float least) {
  Ints counts(0);
  for (int64_t i = 0; i < size; i += kLanes) counts = counts - (Floats::load(values + i) >= least);
  return sum_of(counts);
}

SETTRAIN_ALWAYS_INLINE float largest(const float* values, int64_t size) {
  Floats most(-kInfinity);
  for (int64_t i = 0; i < size; i += kLanes) most = larger(most, Floats::load(values + i));
  return largest_of(most);
}

/// The least of those that are at least `least`.
SETTRAIN_ALWAYS_INLINE float smallest_from(const float* values, int64_t size, float least) {
  Floats smallest(kInfinity);
  for (int64_t i = 0; i < size; i += kLanes) {
    const Floats value = Floats::load(values + i);
    smallest = smaller(smallest, choose(value >= least, value, Floats(kInfinity)));
  }
  return smallest_of(smallest);
}

/// Integers in the order of the numbers, and back.
SETTRAIN_ALWAYS_INLINE int64_t place_of(float value) {
  const int32_t bits = ieee::to_bits(value);
  return bits >= 0 ? int64_t{bits} : int64_t{INT32_MIN} - bits;
}
SETTRAIN_ALWAYS_INLINE float at_place(int64_t place) {
  return ieee::from_bits(static_cast<int32_t>(place >= 0 ? place : INT32_MIN - place));
}

/// The value of rank `rank` (1: the largest), or, with a slack, a number that at least `rank` and at most `rank` +
/// `slack` values reach, where ties allow that. `low`: a number that at least `rank` values reach. No NaN.
SETTRAIN_ALWAYS_INLINE float value_of_rank(const float* values, int64_t size, int64_t rank, float low, int64_t slack) {
  int64_t below = place_of(low), above = place_of(largest(values, size)) + 1;
  while (above - below > 1) {
    const int64_t middle = below + (above - below) / 2;
    const float least = at_place(middle);
    const int64_t count = count_at_least(values, size, least);
    if (count >= rank && count <= rank + slack) return slack > 0 ? least : smallest_from(values, size, least);
    (count >= rank ? below : above) = middle;
  }
  return at_place(below);
}

/// Where the value of rank `rank` is, which equals `value`. Among equal values that of the lower class comes first.
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
