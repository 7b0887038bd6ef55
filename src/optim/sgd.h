// Stochastic gradient descent.
#pragma once

#include <vector>

#include "src/optim/optimizer.h"

namespace settrain {

struct SgdOptions {
  double lr = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;

  static config::Keys keys();
};

/// g = gradient + weight_decay * p;  v = momentum * v + g;  p -= lr * (nesterov ? g + momentum * v : v), as PyTorch's
/// SGD with dampening 0. Weight decay covers batch norm and biases too unless told otherwise, as in the papers' code. A
/// fused call a group and step.
class Sgd : public Optimizer {
 public:
  /// Throws ConfigError for Nesterov without momentum.
  Sgd(const TrainedParameters& parameters, const SgdOptions& options);

  void step(const at::Tensor& lr, const std::optional<at::Tensor>& stop = {}) override;

  /// v of every parameter: "momentum.fc.weight".
  Named state() const override { return named("momentum", velocities_); }

 private:
  std::vector<at::Tensor> velocities_;
  SgdOptions options_;
};

OptimizerEntry sgd_entry();

}  // namespace settrain
