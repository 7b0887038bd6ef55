// Binary cross-entropy over all classes, with several labels a sample.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// With the label set Y of a sample,
///
///     -sum_{j in Y} log sigma(s_j) - sum_{j not in Y} log(1 - sigma(s_j))
///
/// (thesis eq. 6.3), a sum over the classes and not a mean. Smooth, no ties, no kink. Gradient: sigma(s) - 1_Y.
class BceMultilabel : public Loss {
 public:
  explicit BceMultilabel(int64_t num_classes) : Loss(num_classes) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;
};

LossEntry bce_multilabel_entry();

}  // namespace settrain
