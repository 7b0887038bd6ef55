// How near two computations of the same numbers must be: the one table.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/ScalarType.h>

#include <stdexcept>

namespace settrain {

/// The largest error of values of order 1 (relative for larger ones) that a computation in `dtype` on `device` may
/// have: a few roundings. CUDA may sum in another order than the CPU.
inline double tolerance(c10::Device device, c10::ScalarType dtype) {
  switch (dtype) {
    case c10::kDouble:
      return 1e-9;  // what golden files promise; the roundings are 1e-14
    case c10::kFloat:
      return device.is_cuda() ? 1e-6 : 5e-7;
    default:
      throw std::logic_error("no tolerance for this dtype");
  }
}

/// Losses in float64 on scores of order 1e4, whose last digits their differences lose.
inline constexpr double kLargeScoresTolerance = 1e-7;

/// A whole network's logits (of order 1), gradients and batch statistics, which gather the roundings of its layers. In
/// float64 two builds differ by the order of their sums alone.
inline double network_tolerance(c10::ScalarType dtype) {
  return dtype == c10::kDouble ? 1e-10 : 2e-5;
}

/// Norms of a whole network's gradients in float32, relative to float64's, where no file says what is usual.
inline constexpr double kLooseGradientTolerance = 5e-3;

/// Fractions of samples and set sizes: quotients of whole numbers.
inline constexpr double kFractionTolerance = 1e-12;

/// Average-K's thresholds: means of two of the scores.
inline constexpr double kThresholdTolerance = 1e-15;

}  // namespace settrain
