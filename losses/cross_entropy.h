// Cross-entropy, the loss that the others are compared with.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, -log softmax_y(s) (Garcin et al., ICML 2022, Table 1; thesis eq. 5.3): smooth, no ties, no kink.
/// Gradient: softmax(s) - e_y. With label smoothing a in [0, 1), the cross-entropy with the distribution (1 - a) e_y +
/// a/L (Szegedy et al., CVPR 2016, section 7), whose least value is above 0; gradient: softmax(s) minus it.
class CrossEntropy : public Loss {
 public:
  CrossEntropy(int64_t num_classes, double label_smoothing) : Loss(num_classes), label_smoothing_(label_smoothing) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  double label_smoothing_;
};

LossEntry cross_entropy_entry();

}  // namespace settrain
