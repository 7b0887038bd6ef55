// The focal loss: Lin et al., "Focal Loss for Dense Object Detection" (ICCV 2017).
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, with CE = -log softmax_y(s) and p = exp(-CE),
///
///     (1 - p)^gamma CE
///
/// (Garcin et al., ICML 2022, Table 1, prints another expression; this is Lin et al.'s and the authors' code's, without
/// alpha). gamma = 0 is cross-entropy. Smooth, but for p = 1 with gamma < 1, where the code's gradient is NaN; here it
/// is its limit, 0. Gradient: that of cross-entropy times (1 - p)^gamma - gamma p (1 - p)^(gamma - 1) log p.
class Focal : public Loss {
 public:
  Focal(int64_t num_classes, double gamma) : Loss(num_classes), gamma_(gamma) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  double gamma_;
};

LossEntry focal_entry();

}  // namespace settrain
