#include "losses/expected_positive_regularisation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "losses/ops/score_ops.h"
#include "losses/ops/set_size.h"

namespace settrain {
namespace {

struct RegularisationOptions {
  int64_t k;
  double beta;
};

}  // namespace

at::Tensor ExpectedPositiveRegularisation::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  const at::Tensor expected = scores.sigmoid().sum(1).mean();
  return -at::log_sigmoid(of_label(scores, input.labels)) + beta_ * (expected - static_cast<double>(k_)).square();
}

LossEntry expected_positive_regularisation_entry() {
  return {.name = "expected_positive_regularisation",
          .help = "Binary cross-entropy of the label, with K positives expected a sample (thesis eq. 5.8).",
          .formula = "-log sigma(s_y) + beta (Khat - K)^2,  Khat = mean over the batch of sum_j sigma(s_j)",
          .keys = {config::key("k", &RegularisationOptions::k, 5,
                               "Expected number of positives per sample, the target of the regulariser. Less than "
                               "the number of classes. Default: the papers' CIFAR-100 tables.")
                       .at_least(1)
                       .in("classes"),
                   config::key("beta", &RegularisationOptions::beta, 0.01,
                               "Weight of the regulariser. Default: thesis, table 5.3.")
                       .at_least(0)},
          .requirements = {},
          .make =
              [](const config::Config& config, const LossContext& context) {
                const auto options = config.read<RegularisationOptions>("loss");
                check_set_size(config, options.k, context.num_classes);
                return std::make_unique<ExpectedPositiveRegularisation>(context.num_classes, options.k, options.beta);
              },
          .couples_samples = true,
          .has_sigmoids = true};
}

}  // namespace settrain
