// How far probabilities can be trusted, and one number that mends most of it.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace settrain {

inline constexpr double kLeastTemperature = 1e-3, kLargestTemperature = 1e3;

/// The temperature T > 0 for which softmax(scores / T) gives the labels the largest likelihood (Guo et al., "On
/// calibration of modern neural networks", ICML 2017, section 4.2). The mean log-likelihood is concave in 1/T, whose
/// derivative is brought to zero by bisection between these two; one of them where it is zero nowhere there.
///
/// `scores` [images, classes] float32 or float64 logits, `labels` [images] int64.
double fit_temperature(const at::Tensor& scores, const at::Tensor& labels);

/// Expected calibration error (Naeini et al., AAAI 2015; Guo et al., eq. 3): images fall into `bins` bins of equal
/// width by their largest softmax probability; the mean over images of |share that is right - mean probability| of
/// their bin.
double expected_calibration_error(const at::Tensor& scores, const at::Tensor& labels, int64_t bins = 15);

}  // namespace settrain
