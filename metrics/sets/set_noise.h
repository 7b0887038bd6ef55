// The random numbers of rules: the u of an image, and what calibration draws.
#pragma once

#include <cstdint>

#include "src/core/random.h"

namespace settrain {

/// The blocks of Stream::kSets.
enum class SetNoise : uint32_t {
  kJudgedImage,       // item = image
  kCalibrationImage,  // item = image
  kSplit,             // the order of the calibration images, of which the first are one part
  kKMeans,            // item = draw, step = restart
  kRarity,            // item = class
};

/// In [0, 1), a function of the arguments alone.
inline double set_noise(uint64_t seed, SetNoise use, int64_t item, uint32_t step = 0) {
  const auto words = random_words(seed, Stream::kSets, static_cast<uint32_t>(item), static_cast<uint32_t>(use),
                                  static_cast<uint32_t>(item >> 32), step);
  return unit_double(words[0], words[1]);
}

}  // namespace settrain
