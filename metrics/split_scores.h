// Scores of labelled images, and what must hold of them before any metric sees them.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>

namespace settrain {

/// The scores of one split, kept once, on the device where they were made; every metric is computed from them.
struct SplitScores {
  at::Tensor scores;        // [samples, classes] float32 or float64, finite, before any softmax
  at::Tensor labels;        // [samples] int64 in [0, classes), on the scores' device
  at::Tensor label_sets{};  // [samples, classes] bool beside them: all labels, where samples have several; or undefined
};

/// The scores and all labels of `samples`, each from 0 to the number of samples - 1, in their order.
SplitScores samples_of(const SplitScores& split, std::span<const int64_t> samples);

/// Throws ShapeError unless `scores` is [at least 1, at least 1] float32 or float64, and NumericalError, naming the
/// first sample and class, where a score is NaN or infinite. `name` is the tensor's in messages.
void check_scores(std::string_view name, const at::Tensor& scores);

/// The first half of check_scores(), without a look at the numbers: throws ShapeError.
void check_score_layout(std::string_view name, const at::Tensor& scores);
/// The second half, for scores that have the layout: throws NumericalError.
void check_finite(std::string_view name, const at::Tensor& scores);

/// check_scores(), and throws ShapeError unless `label_sets` is [samples, classes] bool on the scores' device, with at
/// least one label a sample.
void check_label_matrix(const at::Tensor& scores, const at::Tensor& label_sets);

/// check_scores(), and throws ShapeError unless the labels are [samples] int64 on the scores' device, in [0, classes).
void check_split(const SplitScores& split);
/// check_split() without its look at the scores' numbers.
void check_split_layout(const SplitScores& split);

}  // namespace settrain
