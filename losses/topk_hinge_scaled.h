// The top-K hinge on scores over K.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, with s without y the scores of all other classes,
///
///     (alpha + ((s without y)_[K] - s_y) / K)_+
///
/// (Berrada et al., ICLR 2018, eq. 8 with the scores over K, as its smoothing in eq. 19 has them: the row tau = 0 of
/// its Table 6): the limit of smoothed_topk_hinge for tau -> 0. Gradient where the loss is positive: +1/K for the K-th
/// best wrong class, -1/K for the label; 0 at the kink. Among equal scores the lower class has the rank.
class TopkHingeScaled : public Loss {
 public:
  TopkHingeScaled(int64_t num_classes, int64_t k, double alpha) : Loss(num_classes), k_(k), alpha_(alpha) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  int64_t k_;
  double alpha_;
};

LossEntry topk_hinge_scaled_entry();

}  // namespace settrain
