#include "src/optim/sgd.h"

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include "src/core/error.h"

namespace settrain {

config::Keys SgdOptions::keys() {
  return {
      config::key("lr", &SgdOptions::lr, 0.1,
                  "Initial learning rate, which the schedule multiplies; 0 leaves the weights unchanged.")
          .at_least(0),
      config::key("momentum", &SgdOptions::momentum, 0.9, "Momentum.").at_least(0).below(1),
      config::key("nesterov", &SgdOptions::nesterov, true, "Nesterov momentum."),
      config::key("weight_decay", &SgdOptions::weight_decay, 1e-4,
                  "L2 penalty on every parameter, batch norm and biases included (as in the papers' code).")
          .at_least(0),
  };
}

Sgd::Sgd(std::vector<std::pair<std::string, at::Tensor>> parameters, const SgdOptions& options) : options_(options) {
  if (options.nesterov && options.momentum == 0) {
    throw KeyError("optimizer.nesterov", "true needs optimizer.momentum above 0");
  }
  for (auto& [name, parameter] : parameters) {
    names_.push_back(name);
    parameters_.push_back(parameter);
    velocities_.push_back(at::zeros_like(parameter));
  }
}

void Sgd::zero_grad() {
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
}

void Sgd::step(double lr) {
  c10::NoGradGuard no_grad;
  std::vector<at::Tensor> updated, gradients, velocities;
  for (size_t i = 0; i < parameters_.size(); ++i) {
    if (!parameters_[i].grad().defined()) continue;
    updated.push_back(parameters_[i]);
    gradients.push_back(parameters_[i].grad());
    velocities.push_back(velocities_[i]);
  }
  if (updated.empty()) return;
  // Velocities start at zero, for which the first step's v = g needs no case of its own.
  if (options_.momentum == 0) velocities.clear();
  at::_fused_sgd_(updated, gradients, velocities, options_.weight_decay, options_.momentum, lr, /*dampening=*/0,
                  options_.nesterov,
                  /*maximize=*/false, /*is_first_step=*/false);
}

std::vector<std::pair<std::string, at::Tensor>> Sgd::momentum() const {
  std::vector<std::pair<std::string, at::Tensor>> named;
  for (size_t i = 0; i < names_.size(); ++i) named.emplace_back(names_[i], velocities_[i]);
  return named;
}

}  // namespace settrain
