// A multi-label loss whose answer is sparse.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// With the label set Y of a sample, q the projection of its scores on the top-|Y| simplex (see
/// sparse_top_projection.h), H the classes at 1 and M those strictly between 0 and 1,
///
///     -sum_{k in Y} s_k + sum_{k in H} (s_k - 1/2) + (1/2) sum_{k in M} (s_k^2 - lambda^2) + |Y|/2
///
/// (thesis eq. 6.24, 6.25), computed as <q - 1_Y, s> + (|Y| - |q|^2)/2, which is the same and loses no digits. Convex,
/// at least 0, and 0 exactly where every label's score is at least 1 above all other classes'. Differentiable
/// everywhere, ties included: gradient q - 1_Y, whose kinks are q's. Of single labels it is the sparsemax loss
/// (eq. 6.12). A shift of all scores changes nothing.
class SparseTop : public Loss {
 public:
  explicit SparseTop(int64_t num_classes) : Loss(num_classes) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;
};

LossEntry sparse_top_entry();

}  // namespace settrain
