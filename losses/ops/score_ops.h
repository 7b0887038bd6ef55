// Small operations on scores that several losses share. All are differentiable.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

/// [batch] scores of the labels, of `scores` [batch, classes] and `labels` [batch] int64.
at::Tensor of_label(const at::Tensor& scores, const at::Tensor& labels);

/// [batch, classes] `scores` with the label's replaced by -infinity, which has no gradient: "s without y", where at
/// most classes - 1 ranks are asked for.
at::Tensor without_label(const at::Tensor& scores, const at::Tensor& labels);

/// [batch] `values`, but NaN for a row of `scores` [batch, classes] that holds a NaN, which a choice of some scores may
/// leave out.
at::Tensor nan_where_any(const at::Tensor& values, const at::Tensor& scores);

/// [batch] the element of rank `rank` of every row, 1: the largest. Among equal ones the lower class comes first, and
/// has the gradient. NaN for a row that holds one.
at::Tensor ranked(const at::Tensor& scores, int64_t rank);

}  // namespace settrain
