// The convex top-K hinge loss.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, with e_y one for the label and zero elsewhere,
///
///     ((1/K) sum_{k <= K} (s + 1 - e_y)_[k] - s_y)_+
///
/// (Garcin et al., ICML 2022, Table 1, "CVX"; Lapin et al., NeurIPS 2015): convex, not calibrated. Gradient where the
/// loss is positive: 1/K for each of the K largest of s + 1 - e_y, minus e_y; 0 at the kink. Among equal scores the
/// lower class comes first.
class TopkHingeConvex : public Loss {
 public:
  TopkHingeConvex(int64_t num_classes, int64_t k) : Loss(num_classes), k_(k) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  int64_t k_;
};

LossEntry topk_hinge_convex_entry();

}  // namespace settrain
