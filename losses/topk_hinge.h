// The top-K hinge loss.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, with s without y the scores of all other classes,
///
///     (1 + (s without y)_[K] - s_y)_+
///
/// (Garcin et al., ICML 2022, eq. 4; thesis eq. 4.4; Berrada et al., ICLR 2018, eq. 6). Gradient where the loss is
/// positive: +1 for the K-th best wrong class, -1 for the label; 0 at the kink. Among equal scores the lower class has
/// the rank. Not calibrated for the top-K error.
class TopkHinge : public Loss {
 public:
  TopkHinge(int64_t num_classes, int64_t k) : Loss(num_classes), k_(k) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  int64_t k_;
};

LossEntry topk_hinge_entry();

}  // namespace settrain
