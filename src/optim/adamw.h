// Adam with decoupled weight decay.
#pragma once

#include <vector>

#include "src/optim/optimizer.h"

namespace settrain {

struct AdamWOptions {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;

  static config::Keys keys();
};

/// Loshchilov & Hutter, "Decoupled Weight Decay Regularization" (2019), algorithm 2. At step t, from 1, with the
/// gradient g:
///
///     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///     p -= lr (weight_decay p + m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps))
///
/// as PyTorch's AdamW: `lr` multiplies the decay too, of which the paper has only the schedule's factor. A fused call a
/// group and step.
class AdamW : public Optimizer {
 public:
  AdamW(const TrainedParameters& parameters, const AdamWOptions& options);

  void step(const at::Tensor& lr, const std::optional<at::Tensor>& stop = {}) override;

  /// m and v of every parameter, "exp_avg.fc.weight" and "exp_avg_sq.fc.weight"; and t, "steps".
  Named state() const override;

 private:
  std::vector<at::Tensor> exp_avgs_, exp_avg_sqs_;
  at::Tensor steps_;  // [] int64 on the parameters' device
  AdamWOptions options_;
};

OptimizerEntry adamw_entry();

}  // namespace settrain
