// How far probabilities can be trusted, and one number that mends most of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>

#include "metrics/split_scores.h"

namespace settrain {

inline constexpr double kLeastTemperature = 1e-3, kLargestTemperature = 1e3;

/// `scores` / `temperature`, in their dtype. A finite score that is then too large for it becomes its largest finite
/// number, as may be those of masked classes.
at::Tensor at_temperature(const at::Tensor& scores, double temperature);

/// With fewer images a fitted temperature depends more on which images these are than on the model.
inline constexpr int64_t kImagesForTemperature = 50;

struct TemperatureFit {
  double temperature = 1;  // 1 where the fit is refused
  std::string refused{};   // a clause that says why there is no temperature; empty where there is one
};

/// The temperature T > 0 for which softmax(scores / T) gives the labels the largest likelihood (Guo et al., "On
/// calibration of modern neural networks", ICML 2017, section 4.2). The mean log-likelihood is concave in 1/T, whose
/// derivative is brought to zero by bisection between the two temperatures above.
///
/// The fit is refused where the likelihood has no maximum: all scores of each image are equal, every label has the
/// largest score of its image (then it grows as T falls to 0), or the labels' scores are on average not above the mean
/// of all scores (then it grows as T rises). It is refused, too, where the maximum lies outside of this range.
///
/// `scores` [images, classes] float32 or float64 finite logits, `labels` [images] int64; at least one image.
TemperatureFit fit_temperature(const at::Tensor& scores, const at::Tensor& labels);

/// The temperature T with which the sets of aps are small, in place of honest probabilities (ConfTS: Xi, Huang, Liu,
/// Feng and Wei, "Delving into temperature scaling for adaptive conformal prediction", arXiv 2402.04344): the one with
/// the least mean of (tau - s(x, y))^2 over `images`, where s is the label's score of aps, not randomised, of scores /
/// T, and tau the conformal quantile at alpha of the labels' scores of other images at the same T. It is searched from
/// kLeastEfficient to kLargestEfficient: on a grid of logarithms, and then between the neighbours of the best point.
///
/// Smaller sets are what the paper measured, and no promise: as T falls to 0 all labels' scores come near 1, and the
/// loss often falls with them, from 1 down to kLeastEfficient without a minimum (docs/set_rules.md has an example).
///
/// Where `threshold_images` are too few for a finite quantile, throws ConfigError.
double efficient_temperature(const SplitScores& threshold_images, const SplitScores& images, double alpha);
inline constexpr double kLeastEfficient = 0.02, kLargestEfficient = 50;

/// Expected calibration error (Naeini et al., AAAI 2015; Guo et al., eq. 3): images fall into `bins` bins of equal
/// width by their largest softmax probability; the mean over images of |share that is right - mean probability| of
/// their bin.
double expected_calibration_error(const at::Tensor& scores, const at::Tensor& labels, int64_t bins = 15);

}  // namespace settrain
