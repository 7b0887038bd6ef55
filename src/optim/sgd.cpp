#include "src/optim/sgd.h"

#include <ATen/ops/_fused_sgd.h>
#include <c10/core/GradMode.h>

#include <memory>

#include "src/core/error.h"

namespace settrain {

config::Keys SgdOptions::keys() {
  return {
      learning_rate_key(&SgdOptions::lr, 0.1),
      config::key("momentum", &SgdOptions::momentum, 0.9, "Momentum.").at_least(0).below(1),
      config::key("nesterov", &SgdOptions::nesterov, true, "Nesterov momentum."),
      config::key(
          "weight_decay", &SgdOptions::weight_decay, 1e-4,
          "L2 penalty on every parameter that optimizer.no_decay does not spare: by default batch norm and biases, "
          "too (as in the papers' code).")
          .at_least(0),
  };
}

Sgd::Sgd(const TrainedParameters& parameters, const SgdOptions& options)
    : Optimizer(parameters), velocities_(zeros()), options_(options) {
  if (options.nesterov && options.momentum == 0) {
    throw KeyError("optimizer.nesterov", "true needs optimizer.momentum above 0");
  }
}

void Sgd::step(const at::Tensor& lr, const std::optional<at::Tensor>& stop) {
  c10::NoGradGuard no_grad;
  for (const Group& group : groups()) {
    // Velocities start at zero, for which the first step's v = g needs no case of its own.
    const auto velocities = options_.momentum == 0 ? std::vector<at::Tensor>() : group.pick(velocities_);
    at::_fused_sgd_(group.parameters, group.gradients, velocities, group.decays ? options_.weight_decay : 0,
                    options_.momentum, lr_of(group, lr), /*dampening=*/0, options_.nesterov,
                    /*maximize=*/false, /*is_first_step=*/false, /*grad_scale=*/{}, stop);
  }
}

OptimizerEntry sgd_entry() {
  return {.name = "sgd",
          .help = "Stochastic gradient descent with momentum.",
          .keys = SgdOptions::keys(),
          .state_size = 1,
          .make =
              [](const config::Config& config, const TrainedParameters& parameters) {
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
