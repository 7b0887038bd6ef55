// Calibration images in two parts, drawn at random.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "metrics/sets/set_noise.h"
#include "src/core/double_double.h"
#include "src/core/random.h"

namespace settrain {

/// What calibration knows of some images.
struct LabelScores {
  std::vector<DoubleDouble> scores;  // [images] the conformal score of the label
  std::vector<int64_t> labels;       // [images] in [0, classes)
};

/// `first` of the images, and the others. A function of the arguments alone.
inline std::pair<LabelScores, LabelScores> parts_of(const LabelScores& all, int64_t first, uint64_t seed) {
  const std::vector<int64_t> order =
      permutation(std::ssize(all.labels), seed, Stream::kSets, 0, static_cast<uint32_t>(SetNoise::kSplit));
  std::pair<LabelScores, LabelScores> parts;
  for (size_t i = 0; i < order.size(); ++i) {
    LabelScores& part = static_cast<int64_t>(i) < first ? parts.first : parts.second;
    part.scores.push_back(all.scores[static_cast<size_t>(order[i])]);
    part.labels.push_back(all.labels[static_cast<size_t>(order[i])]);
  }
  return parts;
}

}  // namespace settrain
