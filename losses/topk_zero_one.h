// The top-K error itself.
#pragma once

#include "losses/loss.h"

namespace settrain {

/// Per sample, 1 if s_[K] > s_y, else 0 (Garcin et al., ICML 2022, eq. 3; thesis eq. 4.3): what the others stand in
/// for. A label that ties with the K-th largest score is no error. Gradient: 0 everywhere, so it trains nothing; it is
/// here for figures and comparisons.
class TopkZeroOne : public Loss {
 public:
  TopkZeroOne(int64_t num_classes, int64_t k) : Loss(num_classes), k_(k) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  int64_t k_;
};

LossEntry topk_zero_one_entry();

}  // namespace settrain
