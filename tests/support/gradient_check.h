// Gradients against differences of the function itself.
#pragma once

#include <ATen/ATen.h>

#include <functional>

namespace settrain::test {

/// A function of one float64 tensor, with a scalar result.
using ScalarFunction = std::function<at::Tensor(const at::Tensor&)>;

/// The gradient at `point` by autograd.
inline at::Tensor gradient_of(const ScalarFunction& function, const at::Tensor& point) {
  const at::Tensor variable = point.detach().clone().requires_grad_();
  function(variable).backward();
  return variable.grad();
}

/// Largest difference between autograd's gradient at `point` (float64) and fourth-order central differences. Meaningful
/// where the function has no kink within 2 * `step` of the point.
inline double gradient_error(const ScalarFunction& function, const at::Tensor& point, double step = 1e-4) {
  const at::Tensor differences = at::zeros_like(point);
  for (int64_t i = 0; i < point.numel(); ++i) {
    const auto at_offset = [&](double steps) {
      const at::Tensor moved = point.detach().clone();
      moved.view(-1)[i] += steps * step;
      return function(moved).item<double>();
    };
    differences.view(-1)[i] = (8 * (at_offset(1) - at_offset(-1)) - (at_offset(2) - at_offset(-2))) / (12 * step);
  }
  return (gradient_of(function, point) - differences).abs().max().item<double>();
}

}  // namespace settrain::test
