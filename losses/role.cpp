#include "losses/role.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "losses/ops/score_ops.h"
#include "losses/ops/set_size.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

// [batch] sums over the classes of the cross-entropy of sigma(logits) with `targets`, which are constants, and with the
// label once more.
at::Tensor towards(const at::Tensor& logits, const at::Tensor& targets, const at::Tensor& labels) {
  const at::Tensor log_p = at::log_sigmoid(logits), log_not_p = at::log_sigmoid(-logits);
  return -of_label(log_p, labels) - (targets * log_p + (1 - targets) * log_not_p).sum(1);
}

}  // namespace

Role::Role(const LossContext& context, const RoleOptions& options)
    : Loss(context.num_classes),
      options_(options),
      theta_(context.train_ids, context.train_labels, context.num_classes, context.seed) {}

at::Tensor Role::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  if (input.estimate_logits)
    check_shape("estimate_logits", input.estimate_logits->sizes(), {scores.size(0), scores.size(1)});
  const at::Tensor estimates = input.estimate_logits ? *input.estimate_logits : theta_.take(input.sample_ids, scores);
  const at::Tensor f = scores.sigmoid(), g = estimates.sigmoid();
  const auto classes = static_cast<double>(num_classes()), k = static_cast<double>(options_.k);
  const auto regulariser = [&](const at::Tensor& p) { return ((p.sum(1).mean() - k) / classes).square(); };
  const at::Tensor both = towards(scores, g.detach(), input.labels) + towards(estimates, f.detach(), input.labels);
  return options_.scale * (both / (2 * classes) + options_.lambda / 2 * (regulariser(f) + regulariser(g)));
}

LossEntry role_entry() {
  using Options = RoleOptions;
  return {
      .name = "role",
      .help = "ROLE, online estimation of a sample's unobserved labels (Cole et al., CVPR 2021).",
      .formula =
          "scale (1/(2L) (BCE(f, g) + BCE(g, f) - log f_y - log g_y) + lambda/2 (R(f) + R(g))),  f = sigma(s), g = "
          "sigma(theta), R(p) = ((mean sum p - K)/L)^2",
      .keys = {config::key("k", &Options::k, 5,
                           "Expected number of labels per sample, the target of the regulariser; without effect if "
                           "lambda is 0. Less than the number of classes. Default: the papers' CIFAR-100 tables.")
                   .at_least(1)
                   .in("labels"),
               config::key("lambda", &Options::lambda, 0.0,
                           "Weight of the regulariser of the expected number of labels. Default: thesis, table 5.3; "
                           "Cole et al.: 1.")
                   .at_least(0),
               config::key("theta_lr", &Options::theta_lr, 1.0,
                           "Learning rate of the estimated labels as a multiple of the optimizer's. Their gradients "
                           "are of the order 1/(classes * batch size), so a short run needs a large multiple. "
                           "Default: thesis, table 5.3.")
                   .at_least(0),
               config::key("scale", &Options::scale, 1.0,
                           "Multiplies the loss, for the network and the estimates alike. The number of classes "
                           "undoes the division by it, as the thesis does in assume_negative and "
                           "expected_positive_regularisation. Default: Cole et al.")
                   .above(0)},
      .requirements = {.sample_ids = true},
      .make =
          [](const config::Config& config, const LossContext& context) {
            const auto options = config.read<Options>("loss");
            check_set_size(config, options.k, context.num_classes);
            return std::make_unique<Role>(context, options);
          },
      .couples_samples = true,
      .has_sigmoids = true};
}

}  // namespace settrain
