// Scores of labelled images.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

namespace settrain {

/// The scores of one split, kept once, on the device where they were made; every metric is computed from them.
struct SplitScores {
  at::Tensor scores;  // [samples, classes] float32 or float64, finite, before any softmax
  at::Tensor labels;  // [samples] int64 in [0, classes), on the scores' device
};

/// Those of `samples`, each from 0 to the number of samples - 1, in their order.
SplitScores samples_of(const SplitScores& split, std::span<const int64_t> samples);

}  // namespace settrain
