// The conformal scores of labels, which calibration is made of.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// [images] the score of every label by `rule`, whose `class_factor` and `seed` are set; u is that of calibration
/// images. The score is -p of rules that are not conformal. `scores` [images, classes] float32 or float64 on the CPU,
/// contiguous, `labels` [images].
std::vector<DoubleDouble> label_scores(const CalibratedRule& rule, const at::Tensor& scores, const at::Tensor& labels);

}  // namespace settrain
