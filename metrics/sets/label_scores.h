// The conformal scores of labels, which calibration is made of.
#pragma once

#include <ATen/core/Tensor.h>

#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// [images] the probability of every label.
std::vector<double> label_probabilities(const at::Tensor& scores, const at::Tensor& labels, ProbabilityKind kind);

/// [images] the score of every label by `rule`, a conformal rule whose `class_factor` and `seed` are set; u is that of
/// calibration images. Both: `scores` [images, classes] float32 or float64 on the CPU, contiguous, `labels` [images].
std::vector<double> label_scores(const CalibratedRule& rule, const at::Tensor& scores, const at::Tensor& labels);

}  // namespace settrain
