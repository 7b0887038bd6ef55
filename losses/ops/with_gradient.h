// Losses that know their gradient as soon as they know their value.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

/// Whether a gradient with respect to `scores` will be asked for.
bool wants_gradient(const at::Tensor& scores);

/// For backward passes that no operations are recorded of: throws Error where they should be.
void check_first_derivative();

/// `values` [batch], functions of the rows of `scores` [batch, classes], with `gradient` [batch, classes] those of each
/// row's value.
at::Tensor with_gradient(const at::Tensor& scores, const at::Tensor& values, const at::Tensor& gradient);

}  // namespace settrain
