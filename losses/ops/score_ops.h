// Small operations on scores that several losses share. All but rank_index() are differentiable.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

/// [batch] the score of each sample's label; `scores` [batch, classes], `labels` [batch] int64.
at::Tensor of_label(const at::Tensor& scores, const at::Tensor& labels);

/// [batch, classes] `scores` with the label's replaced by -infinity, which has no gradient: "s without y", for ranks up
/// to classes - 1.
at::Tensor without_label(const at::Tensor& scores, const at::Tensor& labels);

/// [batch] `values`, but NaN for each row of `scores` [batch, classes] that holds a NaN. For losses that ignore some of
/// the scores.
at::Tensor nan_where_any(const at::Tensor& values, const at::Tensor& scores);

/// The index, along the last dimension of `values` [..., classes] float32 or float64, of the element with rank `rank`
/// in descending order (0: the largest); 0 <= rank < classes. Among equal values the lower index comes first. NaN
/// counts as larger than everything, as in at::sort. Returns [...] int64; no gradient.
at::Tensor rank_index(const at::Tensor& values, int64_t rank);

/// [batch] the element of rank `rank` of every row, 1: the largest. Among equal ones the lower class comes first, and
/// has the gradient. NaN for a row that holds one.
at::Tensor ranked(const at::Tensor& scores, int64_t rank);

/// As loss.epsilon: the standard deviation of the noise is that of the sample's scores.
inline constexpr double kSpreadOfScores = -1;

/// Scores with mean 0 and standard deviation 1 in each row: noise of standard deviation 1 on them is noise of `spread`
/// on the others. Both have a gradient. The spread is at least 1e-12, without a gradient where it would be less. A
/// score of -infinity, of a masked class, counts for neither and stays.
struct UnitSpread {
  at::Tensor scores;  // [batch, classes]
  at::Tensor spread;  // [batch] the standard deviation of the row's scores, with the number of classes as divisor
};
UnitSpread unit_spread(const at::Tensor& scores);

}  // namespace settrain
