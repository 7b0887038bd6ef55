// What must hold of scores and labels before any metric sees them.
#pragma once

#include <ATen/core/Tensor.h>

#include <string_view>

#include "metrics/metric.h"

namespace settrain {

/// Throws ShapeError unless `scores` is [at least 1, at least 1] float32 or float64, and NumericalError, naming the
/// first sample and class, where a score is NaN or infinite. `name` is the tensor's in messages.
void check_scores(std::string_view name, const at::Tensor& scores);

/// check_scores(), and throws ShapeError unless the labels are [samples] int64 on the scores' device, in [0, classes).
void check_split(const SplitScores& split);

}  // namespace settrain
