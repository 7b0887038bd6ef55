#include "src/optim/clip.h"

#include <ATen/ops/_foreach_mul.h>
#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/stack.h>
#include <c10/core/GradMode.h>

#include <vector>

namespace settrain {

at::Tensor clip_gradients(std::span<const at::Tensor> parameters, double max_norm) {
  c10::NoGradGuard no_grad;
  std::vector<at::Tensor> gradients;
  for (const at::Tensor& parameter : parameters) {
    if (parameter.grad().defined()) gradients.push_back(parameter.grad());
  }
  if (gradients.empty()) return {};
  const at::Tensor norm = at::stack(at::_foreach_norm(gradients)).norm();
  at::_foreach_mul_(gradients, norm.reciprocal().mul(max_norm).clamp_max(1.0));
  return norm;
}

}  // namespace settrain
