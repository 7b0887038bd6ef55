// The noised top-K loss for balanced data.
#pragma once

#include "losses/loss.h"
#include "losses/ops/sampled_topk.h"

namespace settrain {

/// Per sample, with t the smoothed (K+1)-th largest score (see smoothed_topk.h),
///
///     (margin + t(s) - s_y)_+
///
/// (Garcin et al., ICML 2022, eq. 10 to 12; thesis eq. 4.10 to 4.12; there margin = 1). Ties go to the lower class.
/// Gradient where the loss is positive: (1/M) times how often each class has rank K+1, minus e_y; it sums to 0. At the
/// kink, where margin + t - s_y is exactly 0, it is 0 (the papers print >=, the authors' code behaves as here). epsilon
/// = 0 is the calibrated hinge (eq. 5).
class NoisedTopk : public Loss {
 public:
  NoisedTopk(int64_t num_classes, const SampledTopkOptions& topk, double margin)
      : Loss(num_classes), topk_(topk), margin_(margin) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  SampledTopkOptions topk_;
  double margin_;
};

LossEntry noised_topk_entry();

}  // namespace settrain
