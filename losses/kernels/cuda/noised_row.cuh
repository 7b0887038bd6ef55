// The perturbed scores of one sample, as integers that sort alike.
#pragma once

#include "losses/kernels/noised_hinge_kernels.h"
#include "src/core/normal.h"

namespace settrain {

/// Larger for larger values; the same for both zeros. Never 0.
__device__ inline uint32_t ordered(float value) {
  const uint32_t bits = static_cast<uint32_t>(ScalarArithmetic::to_bits(value == 0 ? 0.0F : value));
  return bits >> 31 ? ~bits : bits | 0x80000000;
}

/// The value that has this integer.
__device__ inline float unordered(uint32_t key) {
  return ScalarArithmetic::from_bits(static_cast<int32_t>(key >> 31 ? key & 0x7FFFFFFF : ~key));
}

struct NoisedRow {
  const float* scores;  // [classes]
  const float* noise;   // [draws, classes], or null
  float epsilon;
  int32_t classes, draws;
  NoiseCounter counter;

  __device__ uint32_t perturbed(int32_t c, float normal) const {
    return ordered(ScalarArithmetic::fma(epsilon, normal, scores[c]));
  }
  __device__ float given(int32_t c, int32_t draw) const { return noise[static_cast<int64_t>(draw) * classes + c]; }

  /// ordered(s_c + epsilon z_c) in one draw.
  __device__ uint32_t perturbed_in(int32_t draw, int32_t c) const {
    if (noise) return perturbed(c, given(c, draw));
    return perturbed(c, normal(noise_word(counter, static_cast<uint32_t>(c), static_cast<uint32_t>(draw),
                                          static_cast<uint32_t>(draws))));
  }

  /// The same in up to four draws, from `draw` on, a multiple of 4: from one Philox block.
  __device__ void perturbed_in_four(int32_t draw, int32_t c, uint32_t (&keys)[4]) const {
    const DrawBlock block = draw_block(static_cast<uint32_t>(draw), static_cast<uint32_t>(draws));
    const auto item = static_cast<uint32_t>(c);
    PhiloxBlock words{};
    if (!noise) words = philox({{item / block.classes, block.index, counter.position, counter.step}}, counter.key);
    const uint32_t first = item % block.classes * block.draws;
    for (uint32_t i = 0; i < 4; ++i) {
      if (i >= block.draws) continue;
      // A choice and no index: an array with an index from outside would not stay in registers.
      const uint32_t at = first + i;
      const uint32_t word =
          at & 2 ? (at & 1 ? words.word[3] : words.word[2]) : (at & 1 ? words.word[1] : words.word[0]);
      keys[i] = perturbed(c, noise ? given(c, draw + static_cast<int32_t>(i)) : normal(word));
    }
  }
};

__device__ inline NoisedRow noised_row(const NoisedHinge& hinge, int64_t row) {
  NoiseCounter counter = hinge.first;
  counter.position += static_cast<uint32_t>(row);
  if (hinge.step) counter.step = static_cast<uint32_t>(*hinge.step);
  return {hinge.scores + row * hinge.classes,
          hinge.noise ? hinge.noise + row * hinge.draws * hinge.classes : nullptr,
          hinge.epsilon,
          static_cast<int32_t>(hinge.classes),
          static_cast<int32_t>(hinge.draws),
          counter};
}

}  // namespace settrain
