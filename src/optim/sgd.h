// Stochastic gradient descent.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

#include "src/config/key.h"

namespace settrain {

struct SgdOptions {
  double lr = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;

  static config::Keys keys();
};

/// g = gradient + weight_decay * p;  v = momentum * v + g;  p -= lr * (nesterov ? g + momentum * v : v), as PyTorch's
/// SGD with dampening 0. Weight decay covers every parameter, batch norm and biases too, as in the papers' code. One
/// fused call a step.
class Sgd {
 public:
  /// `parameters`: by name; all on one device, all requiring gradients. Throws ConfigError for Nesterov without
  /// momentum.
  Sgd(std::vector<std::pair<std::string, at::Tensor>> parameters, const SgdOptions& options);

  void zero_grad();
  /// Updates every parameter that has a gradient.
  void step(double lr);

  const std::vector<at::Tensor>& parameters() const { return parameters_; }

  /// v of every parameter, by the parameter's name.
  std::vector<std::pair<std::string, at::Tensor>> momentum() const;

 private:
  std::vector<std::string> names_;
  std::vector<at::Tensor> parameters_, velocities_;
  SgdOptions options_;
};

}  // namespace settrain
