// The calibrated top-K hinge loss.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample,
///
///     (1 + s_[K+1] - s_y)_+
///
/// (Garcin et al., ICML 2022, eq. 5; thesis eq. 4.5; Yang and Koyejo, ICML 2020): calibrated for the top-K error.
/// Gradient where the loss is positive: +1 for the (K+1)-th best class, -1 for the label; 0 where these are the same,
/// and at the kink. Among equal scores the lower class has the rank.
class TopkHingeCalibrated : public Loss {
 public:
  TopkHingeCalibrated(int64_t num_classes, int64_t k) : Loss(num_classes), k_(k) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  int64_t k_;
};

LossEntry topk_hinge_calibrated_entry();

}  // namespace settrain
