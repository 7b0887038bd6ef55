// Sums over processes that gradients go through.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace settrain {

/// The sum of a tensor over processes, which all call it in the same order with tensors of one shape.
using SumOverProcesses = std::function<at::Tensor(const at::Tensor& mine)>;

/// sum(mine), differentiable: the gradient of `mine` is the sum of the processes' gradients, since their losses are
/// added.
at::Tensor shared_sum(const at::Tensor& mine, const SumOverProcesses& sum);

}  // namespace settrain
