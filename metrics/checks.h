// What must hold of scores and labels before any metric sees them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "metrics/metric.h"

namespace settrain {

/// Throws ShapeError unless `scores` is [at least 1, at least 1] float32 or float64, and NumericalError, naming the
/// first sample and class, where a score is NaN or infinite. `name` is the tensor's in messages.
void check_scores(std::string_view name, const at::Tensor& scores);

/// check_scores() without its look at the numbers: what throws ShapeError.
void check_score_layout(std::string_view name, const at::Tensor& scores);
/// check_scores() of those that have the layout: what throws NumericalError.
void check_finite(std::string_view name, const at::Tensor& scores);

/// check_scores(), and throws ShapeError unless the labels are [samples] int64 on the scores' device, in [0, classes).
void check_split(const SplitScores& split);
/// check_split() without its look at the scores' numbers.
void check_split_layout(const SplitScores& split);

}  // namespace settrain
