#include "losses/ops/score_ops.h"

#include <c10/core/GradMode.h>

#include <limits>

#include "losses/ops/rank_index.h"

namespace settrain {

at::Tensor of_label(const at::Tensor& scores, const at::Tensor& labels) {
  return scores.gather(1, labels.unsqueeze(1)).squeeze(1);
}

at::Tensor without_label(const at::Tensor& scores, const at::Tensor& labels) {
  return scores.scatter(1, labels.unsqueeze(1), -std::numeric_limits<double>::infinity());
}

at::Tensor nan_where_any(const at::Tensor& values, const at::Tensor& scores) {
  const at::Tensor is_nan = scores.detach().amax(1).isnan();
  return values.masked_fill(is_nan, std::numeric_limits<double>::quiet_NaN());
}

at::Tensor ranked(const at::Tensor& scores, int64_t rank) {
  at::Tensor index;
  {
    const c10::NoGradGuard no_grad;
    index = rank_index(scores.detach(), rank - 1);
  }
  return nan_where_any(of_label(scores, index), scores);
}

}  // namespace settrain
