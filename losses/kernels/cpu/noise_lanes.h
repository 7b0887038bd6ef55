// The noise of sixteen classes of a sample at a time.
#pragma once

#include "losses/kernels/cpu/lanes.h"
#include "src/core/noise.h"

namespace settrain {
namespace {

/// {0, 1, 2, ..., 15}.
SETTRAIN_ALWAYS_INLINE Words lane_numbers() {
  constexpr uint32_t numbers[kLanes] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  return Words::load(numbers);
}

/// normals[draw] of the draws [4 * index, 4 * index + kDraws) of these classes, laid out as noise_word() says.
template <int kDraws>
SETTRAIN_ALWAYS_INLINE void normals_of(const NoiseCounter& counter, uint32_t index, Words classes,
                                       Floats (&normals)[kDraws]) {
  constexpr uint32_t kShift = kDraws == 1 ? 2 : kDraws == 2 ? 1 : 0;  // a block serves 1 << kShift classes
  const auto words = philox<LaneArithmetic>(
      {{classes >> kShift, Words(index), Words(counter.position), Words(counter.step)}}, counter.key);
  const auto odd = bits_as<int32_t>(classes << 31u) >> 31;
  const auto word_of = [&](int draw) SETTRAIN_INLINE_LAMBDA {
    if constexpr (kDraws == 1) {
      const auto upper = bits_as<int32_t>(classes << 30u) >> 31;
      return choose(upper, choose(odd, words.word[3], words.word[2]), choose(odd, words.word[1], words.word[0]));
    } else if constexpr (kDraws == 2) {
      return choose(odd, words.word[2 + draw], words.word[draw]);
    } else {
      return words.word[draw];
    }
  };
  for (int draw = 0; draw < kDraws; ++draw) normals[draw] = normal_of<LaneArithmetic>(word_of(draw));
}

/// The same of 16, 32 or 64 neighbouring classes, from `first` on, a multiple of 4: of as many as fill the lanes'
/// blocks. normals[draw][i] of class first + i.
template <int kDraws>
constexpr int kClassesAtOnce = kDraws == 1   ? 64
                               : kDraws == 2 ? 32
                                             : 16;
template <int kDraws>
SETTRAIN_ALWAYS_INLINE void normals_from(const NoiseCounter& counter, uint32_t index, uint32_t first,
                                         float (&normals)[kDraws][kClassesAtOnce<kDraws>]) {
  constexpr int kClasses = kClassesAtOnce<kDraws> / kLanes;
  const auto words = philox<LaneArithmetic>(
      {{lane_numbers() + first / kClasses, Words(index), Words(counter.position), Words(counter.step)}}, counter.key);
  for (int i = 0; i < kClasses; ++i) {
    for (int draw = 0; draw < kDraws; ++draw) {
      float of_lanes[kLanes];
      normal_of<LaneArithmetic>(words.word[i * kDraws + draw]).store(of_lanes);
      for (int lane = 0; lane < kLanes; ++lane) normals[draw][lane * kClasses + i] = of_lanes[lane];
    }
  }
}

}  // namespace
}  // namespace settrain
