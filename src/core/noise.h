// The random words behind the noise of a loss: `rng: 1`, the versioned map from (seed, step, position, class, draw) to
// a word.
#pragma once

#include <cstdint>
#include <string>

#include "src/core/error.h"
#include "src/core/philox.h"
#include "src/core/random.h"

namespace settrain {

/// The noise of a loss is a function of (seed, step, position, class, draw). Position and not sample id, since a sample
/// may repeat within a step.
struct NoiseKey {
  uint64_t seed = 0;
  int64_t step = 0;            // global optimizer step, from 0
  int64_t first_position = 0;  // of this batch's first sample within the step's global batch
  // Where set, CUDA kernels read the step there, in memory of their device, and `step` counts for nothing: a CUDA graph
  // repeats the arguments with which it was captured. Where no kernel reads it, it is copied to the host.
  const int64_t* step_on_device = nullptr;
};

/// The part of Philox's key and counter that all words of one sample share.
struct NoiseCounter {
  PhiloxKey key;
  uint32_t position;  // of the sample within the step's global batch
  uint32_t step;
};

/// The counter of a batch's first sample; sample i has `position` + i. Throws ConfigError where the step or a position
/// of the batch does not fit 32 bits.
inline NoiseCounter noise_counter(const NoiseKey& key, int64_t batch) {
  constexpr int64_t limit = int64_t{1} << 32;
  if (key.step < 0 || key.step >= limit) {
    throw ConfigError("step " + std::to_string(key.step) +
                      " has no noise of its own: steps are numbered from 0 to 2^32 - 1, train for fewer");
  }
  if (key.first_position < 0 || batch < 0 || key.first_position > limit - batch) {
    throw ConfigError("positions " + std::to_string(key.first_position) + " to " +
                      std::to_string(key.first_position + batch - 1) +
                      " of a global batch have no noise of their own: they are numbered from 0 to 2^32 - 1");
  }
  return {philox_key(key.seed, Stream::kLossNoise), static_cast<uint32_t>(key.first_position),
          static_cast<uint32_t>(key.step)};
}

/// How the draws [4 * index, 4 * index + draws) of every class lie in Philox blocks: a block serves `classes`
/// neighbouring classes, so that the last few draws of a class need no block to themselves (5 draws cost 1.25 blocks a
/// class and not 2).
struct DrawBlock {
  uint32_t index;
  uint32_t draws;    // 1 to 4
  uint32_t classes;  // 4 where draws is 1, 2 where it is 2, else 1
};

SETTRAIN_HOST_DEVICE constexpr DrawBlock draw_block(uint32_t draw, uint32_t num_draws) {
  const uint32_t index = draw / 4;
  const uint32_t left = num_draws - 4 * index;
  const uint32_t draws = left < 4 ? left : 4;
  return {index, draws, 4 / draws};
}

/// The word of draw `draw` of `num_draws` for a class: word [class % classes * draws + draw % 4] of the block with the
/// counter (class / classes, index, position, step).
SETTRAIN_HOST_DEVICE constexpr uint32_t noise_word(const NoiseCounter& counter, uint32_t class_index, uint32_t draw,
                                                   uint32_t num_draws) {
  const DrawBlock block = draw_block(draw, num_draws);
  const PhiloxBlock words =
      philox({{class_index / block.classes, block.index, counter.position, counter.step}}, counter.key);
  return words.word[class_index % block.classes * block.draws + draw % 4];
}

}  // namespace settrain
