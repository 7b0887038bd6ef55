// The label-distribution-aware margin loss: Cao et al., NeurIPS 2019.
#pragma once

#include <utility>

#include "losses/loss.h"
#include "losses/ops/class_margins.h"

namespace settrain {

/// Per sample, with cosines s and class margins m (see margins.h), the cross-entropy of
///
///     scale (s - m_y e_y)
///
/// at the label y (Cao et al., NeurIPS 2019; Garcin et al., ICML 2022, Table 1; thesis Table 4.1; the scale is the
/// authors' code's). Smooth, no ties, no kink. Gradient: scale (softmax - e_y) of those scores; it sums to 0.
class Ldam : public Loss {
 public:
  Ldam(int64_t num_classes, ClassMargins margins, double scale)
      : Loss(num_classes), margins_(std::move(margins)), scale_(scale) {}

  double score_scale() const override { return scale_; }

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  ClassMargins margins_;
  double scale_;
};

LossEntry ldam_entry();

}  // namespace settrain
