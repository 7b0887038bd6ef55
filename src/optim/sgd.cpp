#include "src/optim/sgd.h"

#include <ATen/ops/_fused_sgd.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>

#include <memory>

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

Sgd::Sgd(const Named& parameters, const SgdOptions& options) : Optimizer(parameters), options_(options) {
  if (options.nesterov && options.momentum == 0) {
    throw KeyError("optimizer.nesterov", "true needs optimizer.momentum above 0");
  }
  for (const auto& [name, parameter] : parameters) velocities_.push_back(at::zeros_like(parameter));
}

void Sgd::step(double lr) {
  c10::NoGradGuard no_grad;
  std::vector<at::Tensor> updated, gradients, velocities;
  for (size_t i = 0; i < parameters().size(); ++i) {
    const at::Tensor& parameter = parameters()[i];
    if (!parameter.grad().defined()) continue;
    updated.push_back(parameter);
    gradients.push_back(parameter.grad());
    velocities.push_back(velocities_[i]);
  }
  if (updated.empty()) return;
  // Velocities start at zero, for which the first step's v = g needs no case of its own.
  if (options_.momentum == 0) velocities.clear();
  at::_fused_sgd_(updated, gradients, velocities, options_.weight_decay, options_.momentum, lr, /*dampening=*/0,
                  options_.nesterov,
                  /*maximize=*/false, /*is_first_step=*/false);
}

OptimizerEntry sgd_entry() {
  return {.name = "sgd",
          .help = "Stochastic gradient descent with momentum.",
          .keys = SgdOptions::keys(),
          .state_size = 1,
          .make =
              [](const config::Config& config, const Optimizer::Named& parameters) {
                return std::make_unique<Sgd>(parameters, config.read<SgdOptions>("optimizer"));
              },
          .rule =
              [](const config::Config& config) {
                const auto options = config.read<SgdOptions>("optimizer");
                if (!options.nesterov || options.momentum > 0) return;
                config.fail("optimizer.nesterov",
                            "needs optimizer.momentum above 0; set optimizer.nesterov: false for plain gradient "
                            "descent");
              }};
}

}  // namespace settrain
