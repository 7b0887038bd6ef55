// Cross-entropy, the loss that the others are compared with.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, -log softmax_y(s) (Garcin et al., ICML 2022, Table 1; thesis eq. 5.3): smooth, no ties, no kink.
/// Gradient: softmax(s) - e_y.
class CrossEntropy : public Loss {
 public:
  explicit CrossEntropy(int64_t num_classes) : Loss(num_classes) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;
};

LossEntry cross_entropy_entry();

}  // namespace settrain
