// The projection of scores on the top-K simplex, with its Jacobian: a sparse answer of K classes' weight.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

/// Row by row the point q of the top-K simplex {0 <= q <= 1, sum q = k} that is nearest to `scores` (thesis eq. 6.13 to
/// 6.15): q_j = clip(s_j - lambda, 0, 1). With k = 1 it is sparsemax (Martins & Astudillo, ICML 2016).
///
/// scores [batch, classes] float32 or float64, finite, or -infinity for a masked class, which is at 0 while others can
/// be 1; k [batch] int64 on the same device, 0 <= k <= classes. Returns [batch, classes] in the dtype of `scores`.
/// Computed in float64 from the sorted breakpoints of the piecewise linear sum_j clip(s_j - lambda, 0, 1): O(L log L),
/// no iteration and no tolerance. A shift of all scores changes nothing. Ties get equal shares. Differentiable in
/// `scores`: the gradient is the product with the Jacobian below. At kinks, where a class is about to leave 0 or 1, it
/// is one of the one-sided limits.
///
/// Throws ShapeError for other shapes and dtypes; on the CPU also for a k out of range.
at::Tensor sparse_top_projection(const at::Tensor& scores, const at::Tensor& k);

/// [batch, classes, classes] the Jacobian of sparse_top_projection at scores whose projection is `projection` [batch,
/// classes]: Diag(m) - m m^T / |M|, m the indicator of M, the classes strictly between 0 and 1 (thesis eq. 6.18, 6.21);
/// 0 where there is none. Take a float64 projection: in float32 a value just below 1 rounds to it. Its product with a
/// vector v takes no such matrix: m (v - mean of v over M).
at::Tensor sparse_top_jacobian(const at::Tensor& projection);

}  // namespace settrain
