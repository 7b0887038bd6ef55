// The logit-adjusted softmax cross-entropy: Menon et al., ICLR 2021.
#pragma once

#include <cstdint>
#include <vector>

#include "losses/loss.h"
#include "losses/ops/class_values.h"

namespace settrain {

/// Per sample, the cross-entropy of
///
///     s + tau log pi
///
/// at the label, pi_j = n_j / sum_i n_i the classes' shares of the training images (Menon et al., "Long-tail learning
/// via logit adjustment", ICLR 2021, eq. 10). Trained so, s alone ranks classes as if all were equally frequent: that
/// is what an evaluation uses. tau 0 is cross-entropy. A class without training images takes no part where tau > 0; as
/// a label it has an infinite loss. Smooth, no ties, no kink. Gradient: softmax(s + tau log pi) - e_y.
class LogitAdjusted : public Loss {
 public:
  /// `class_counts`: [classes] n_j.
  LogitAdjusted(const std::vector<int64_t>& class_counts, double tau);

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  ClassValues offsets_;  // tau log pi
};

LossEntry logit_adjusted_entry();

}  // namespace settrain
