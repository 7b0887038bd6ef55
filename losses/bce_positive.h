// Binary cross-entropy of the label alone.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, -log sigma(s_y) (thesis eq. 5.6): smooth; its minimum has every score at infinity, so it needs a
/// regulariser (expected_positive_regularisation). Gradient: sigma(s_y) - 1 for the label, 0 elsewhere. NaN where any
/// score of the sample is, as with every loss.
class BcePositive : public Loss {
 public:
  explicit BcePositive(int64_t num_classes) : Loss(num_classes) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;
};

LossEntry bce_positive_entry();

}  // namespace settrain
