// Online estimation of unobserved labels.
#pragma once

#include "losses/loss.h"
#include "losses/ops/label_estimates.h"

namespace settrain {

struct RoleOptions {
  int64_t k;
  double lambda;
  double theta_lr;
  double scale;
};

/// ROLE, regularised online label estimation (Cole et al., CVPR 2021; named in thesis 5.4.6). Beside the network it
/// trains theta [training samples, classes], the logits of estimated labels. With f = sigma(scores), g = sigma(theta of
/// the sample) and [.] a stopped gradient, the mean over a batch of B samples is `scale` times
///
///     1/(2 L B) sum_ij { -1[j = y_i] (log f + log g) - [g] log f - (1 - [g]) log(1 - f) - [f] log g - (1 - [f]) log(1
///     - g) }
///         + lambda/2 (R(f) + R(g)),      R(p) = ((mean_i sum_j p_ij - K)/L)^2
///
/// Smooth. Since [.] are constants its gradient is not the derivative of its value. R couples the samples of a batch:
/// it is shared out evenly among them, and is that of each batch alone where gradients of several are accumulated.
///
/// theta lies on the CPU, 4 bytes an entry: 98 MiB for 256,000 samples of 100 classes, 4.8 GiB for ImageNet. It starts
/// as label_estimates.h says, and moves by plain gradient descent at theta_lr times the optimizer's rate, without
/// momentum and weight decay: a row has a gradient once an epoch. Where lambda is 0, an entry that is not the label's
/// moves by less than scale * theta_lr * rate / (2 L B) each time.
class Role : public Loss {
 public:
  Role(const LossContext& context, const RoleOptions& options);

  std::vector<std::pair<std::string, at::Tensor>> state() override { return {{"theta", theta_.logits()}}; }
  void update(double lr) override { theta_.update(options_.theta_lr * lr); }

 protected:
  /// Throws ShapeError for an id that is not among the training samples'.
  at::Tensor per_sample(const LossInput& input) override;

 private:
  RoleOptions options_;
  LabelEstimates theta_;
};

LossEntry role_entry();

}  // namespace settrain
