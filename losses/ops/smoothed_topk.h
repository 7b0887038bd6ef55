// The smoothed k-th largest score by perturbation: a differentiable operator, useful beyond the losses of this folder.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

struct SmoothedTopk {
  at::Tensor values;  // [batch], dtype of the scores, with a gradient to them
  at::Tensor chosen;  // [batch, draws] int64: the class that has the rank in each draw
};

/// The mean over M draws of the element of rank `rank` of s + epsilon z_m (Garcin et al., ICML 2022, eq. 11 with rank =
/// K + 1; thesis eq. 4.11):
///
///     t(s) = (1/M) sum_m (s + epsilon z_m)_[rank]
///
/// `scores` [batch, classes] float32 or float64; `noise` [batch, draws, classes] standard normals, no gradient, cast to
/// the dtype of the scores; `rank` in [1, classes], 1: the largest; `epsilon` >= 0 in units of the scores. Ties: the
/// lower class comes first. Draws are summed in order. Gradient: dt/ds_j = (1/M) times how often class j is chosen, so
/// that it sums to 1; for fixed noise it is the exact derivative wherever no two perturbed scores tie. A row that holds
/// a NaN has the value NaN. Throws ShapeError.
SmoothedTopk smoothed_topk(const at::Tensor& scores, const at::Tensor& noise, int64_t rank, double epsilon);

}  // namespace settrain
