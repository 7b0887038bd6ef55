// Binary cross-entropy that takes every other class for wrong.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, with sigma the logistic function,
///
///     -log sigma(s_y) - (1/(L-1)) sum_{j != y} log(1 - sigma(s_j))
///
/// (thesis eq. 5.5). Smooth. Gradient: sigma(s_y) - 1 for the label, sigma(s_j)/(L-1) for the others; it does not sum
/// to 0, and a shift of all scores changes the loss. (Cole et al., CVPR 2021, have it over L.)
class AssumeNegative : public Loss {
 public:
  explicit AssumeNegative(int64_t num_classes) : Loss(num_classes) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;
};

LossEntry assume_negative_entry();

}  // namespace settrain
