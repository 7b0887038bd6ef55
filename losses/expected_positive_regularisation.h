// Binary cross-entropy of the label, with a fixed number of positives expected.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// With Khat = (1/B) sum_{i, j} sigma(s_ij) the mean number of classes that a batch of B samples calls right,
///
///     mean_i -log sigma(s_i,y_i) + beta (Khat - K)^2
///
/// (thesis eq. 5.7, 5.8; Cole et al., CVPR 2021, whose beta is L times this one). Smooth. The second term couples the
/// samples of a batch: it is shared out evenly among them, and is that of each batch alone where gradients of several
/// are accumulated. Gradient of the mean: (sigma(s_iy) - 1)/B for the label, plus 2 beta (Khat - K) sigma'(s_ij)/B for
/// every class.
class ExpectedPositiveRegularisation : public Loss {
 public:
  ExpectedPositiveRegularisation(int64_t num_classes, int64_t k, double beta) : Loss(num_classes), k_(k), beta_(beta) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  int64_t k_;
  double beta_;
};

LossEntry expected_positive_regularisation_entry();

}  // namespace settrain
