// The noised top-K loss for imbalanced data.
#pragma once

#include <utility>

#include "losses/loss.h"
#include "losses/ops/class_margins.h"
#include "losses/ops/sampled_topk.h"

namespace settrain {

/// What `scale` multiplies.
enum class ScaleOn {
  kLoss,    // the loss: margins and epsilon are in units of cosines, as the authors' code has it
  kScores,  // the scores: margins and epsilon are in units of the scaled scores, as the paper's text has it
};

/// Per sample, with cosines s, t the smoothed (K+1)-th largest score (see smoothed_topk.h) and class margins m (see
/// margins.h),
///
///     (scale (m_y + t(s) - s_y))_+           with ScaleOn::kLoss
///     (m_y + t(scale s) - scale s_y)_+       with ScaleOn::kScores
///
/// (Garcin et al., ICML 2022, eq. 13 and section 4.5; thesis eq. 4.13). Ties go to the lower class. Gradient where the
/// loss is positive: `scale` times ((1/M) times how often each class has rank K+1, minus e_y); it sums to 0. At the
/// kink it is 0.
class NoisedTopkImbalanced : public Loss {
 public:
  NoisedTopkImbalanced(int64_t num_classes, const SampledTopkOptions& topk, ClassMargins margins, double scale,
                       ScaleOn scale_on)
      : Loss(num_classes), topk_(topk), margins_(std::move(margins)), scale_(scale), scale_on_(scale_on) {}

  double score_scale() const override { return scale_; }

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  SampledTopkOptions topk_;
  ClassMargins margins_;
  double scale_;
  ScaleOn scale_on_;
};

LossEntry noised_topk_imbalanced_entry();

}  // namespace settrain
