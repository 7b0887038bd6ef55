#include <ATen/ops/_fused_sgd.h>
#include <c10/core/GradMode.h>

#include "src/optim/optimizer.h"

namespace settrain {
namespace {

struct SgdOptions {
  double lr = 0, momentum = 0, weight_decay = 0;
  bool nesterov = false;

  static config::Keys keys() {
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
};

/// g = gradient + weight_decay * p;  v = momentum * v + g;  p -= lr * (nesterov ? g + momentum * v : v), as PyTorch's
/// SGD with dampening 0. Weight decay covers batch norm and biases too unless told otherwise, as in the papers' code. A
/// step makes one fused call for each group of parameters. The state: v of every parameter, "momentum.fc.weight".
class Sgd : public Optimizer {
 public:
  Sgd(const TrainedParameters& parameters, const SgdOptions& options)
      : Optimizer(parameters), velocities_(zeros()), options_(options) {}

  void step(const at::Tensor& lr, const std::optional<at::Tensor>& stop) override {
    c10::NoGradGuard no_grad;
    for (const Group& group : groups()) {
      // Velocities start at zero, for which the first step's v = g needs no case of its own.
      const auto velocities = options_.momentum == 0 ? std::vector<at::Tensor>() : group.pick(velocities_);
      at::_fused_sgd_(group.parameters, group.gradients, velocities, group.decays ? options_.weight_decay : 0,
                      options_.momentum, group.own_lr(lr), /*dampening=*/0, options_.nesterov,
                      /*maximize=*/false, /*is_first_step=*/false, /*grad_scale=*/{}, stop);
    }
  }

  Named state() const override { return named("momentum", velocities_); }

 private:
  std::vector<at::Tensor> velocities_;
  SgdOptions options_;
};

void nesterov_rule(const config::Config& config) {
  const auto options = config.read<SgdOptions>("optimizer");
  if (!options.nesterov || options.momentum > 0) return;
  config.fail("optimizer.nesterov",
              "needs optimizer.momentum above 0; set optimizer.nesterov: false for plain gradient descent");
}

}  // namespace

OptimizerEntry sgd_entry() {
  return {.name = "sgd",
          .help = "Stochastic gradient descent with momentum.",
          .keys = SgdOptions::keys(),
          .state_size = 1,
          .make =
              [](const config::Config& config, const TrainedParameters& parameters) {
                return std::make_unique<Sgd>(parameters, config.read<SgdOptions>("optimizer"));
              },
          .rule = nesterov_rule};
}

}  // namespace settrain
