#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/zeros.h>
#include <c10/core/GradMode.h>

#include "src/optim/optimizer.h"

namespace settrain {
namespace {

struct AdamWOptions {
  double lr = 0, beta1 = 0, beta2 = 0, eps = 0, weight_decay = 0;

  static config::Keys keys() {
    return {
        learning_rate_key(&AdamWOptions::lr, 1e-3),
        config::key("beta1", &AdamWOptions::beta1, 0.9, "Decay of the moving average of gradients.")
            .at_least(0)
            .below(1),
        config::key("beta2", &AdamWOptions::beta2, 0.999, "Decay of the moving average of squared gradients.")
            .at_least(0)
            .below(1),
        config::key("eps", &AdamWOptions::eps, 1e-8, "Added to the root of the squared gradients' average.").above(0),
        config::key("weight_decay", &AdamWOptions::weight_decay, 0.01,
                    "Decoupled weight decay: each step takes this times the learning rate off every parameter that "
                    "optimizer.no_decay does not spare.")
            .at_least(0),
    };
  }
};

at::Tensor zero_steps(const TrainedParameters& parameters) {
  const at::TensorOptions integer(at::kLong);
  return at::zeros({}, parameters.empty() ? integer : integer.device(parameters[0].tensor.device()));
}

/// Loshchilov & Hutter, "Decoupled Weight Decay Regularization" (2019), algorithm 2. At step t, from 1, with the
/// gradient g:
///
///     m = beta1 m + (1 - beta1) g;  v = beta2 v + (1 - beta2) g^2
///     p -= lr (weight_decay p + m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps))
///
/// as PyTorch's AdamW: `lr` multiplies the decay too, of which the paper has only the schedule's factor. A step makes
/// one fused call for each group of parameters. The state: m and v of every parameter, "exp_avg.fc.weight" and
/// "exp_avg_sq.fc.weight", and t, "steps".
class AdamW : public Optimizer {
 public:
  AdamW(const TrainedParameters& parameters, const AdamWOptions& options)
      : Optimizer(parameters),
        exp_avgs_(zeros()),
        exp_avg_sqs_(zeros()),
        steps_(zero_steps(parameters)),
        options_(options) {}

  void step(const at::Tensor& lr, const std::optional<at::Tensor>& stop) override {
    c10::NoGradGuard no_grad;
    steps_.add_(1);
    // ATen reads the step's number from a float tensor, one a parameter.
    const at::Tensor number = steps_.to(at::kFloat);
    for (const Group& group : groups()) {
      at::_fused_adamw_(group.parameters, group.gradients, group.pick(exp_avgs_), group.pick(exp_avg_sqs_),
                        /*max_exp_avg_sqs=*/{}, std::vector<at::Tensor>(group.members.size(), number), group.own_lr(lr),
                        options_.beta1, options_.beta2, group.decays ? options_.weight_decay : 0, options_.eps,
                        /*amsgrad=*/false, /*maximize=*/false, /*grad_scale=*/{}, stop);
    }
  }

  Named state() const override {
    Named all = named("exp_avg", exp_avgs_);
    for (auto& item : named("exp_avg_sq", exp_avg_sqs_)) all.push_back(std::move(item));
    all.emplace_back("steps", steps_);
    return all;
  }

 private:
  std::vector<at::Tensor> exp_avgs_, exp_avg_sqs_;
  at::Tensor steps_;  // [] int64 on the parameters' device
  AdamWOptions options_;
};

}  // namespace

OptimizerEntry adamw_entry() {
  return {.name = "adamw",
          .help = "Adam with decoupled weight decay (Loshchilov & Hutter 2019).",
          .keys = AdamWOptions::keys(),
          .state_size = 2,
          .make = [](const config::Config& config, const TrainedParameters& parameters) {
            return std::make_unique<AdamW>(parameters, config.read<AdamWOptions>("optimizer"));
          }};
}

}  // namespace settrain
