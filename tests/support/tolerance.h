// Comparisons of tensors with the one table of tolerances.
#pragma once

#include <ATen/ATen.h>

#include <limits>

#include "src/measure/check/tolerance.h"

namespace settrain::test {

/// Largest |got - expected| / max(1, |expected|) in float64; infinite where shapes differ or a value is NaN.
inline double relative_error(const at::Tensor& got, const at::Tensor& expected) {
  if (got.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  const at::Tensor a = got.detach().to(at::kCPU, at::kDouble), b = expected.detach().to(at::kCPU, at::kDouble);
  const double error = ((a - b).abs() / b.abs().clamp_min(1)).max().item<double>();
  return error == error ? error : std::numeric_limits<double>::infinity();
}

/// Whether relative_error() is within the tolerance for the dtype and device of `got`.
inline bool near(const at::Tensor& got, const at::Tensor& expected) {
  return relative_error(got, expected) <= tolerance(got.device(), got.scalar_type());
}

}  // namespace settrain::test
