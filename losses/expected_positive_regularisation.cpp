#include "losses/expected_positive_regularisation.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "losses/score_ops.h"
#include "losses/set_size.h"

namespace settrain {
namespace {

struct RegularisationOptions {
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
          .keys = {SetSizeOptions::key(5, "the papers' CIFAR-100 tables"),
                   config::key("beta", &RegularisationOptions::beta, 0.01,
                               "Weight of the regulariser. Default: thesis, table 5.3.")
                       .at_least(0)},
          .requirements = {},
          .make =
              [](const config::Config& config, const LossContext& context) {
                return std::make_unique<ExpectedPositiveRegularisation>(
                    context.num_classes, read_set_size(config, context.num_classes),
                    config.read<RegularisationOptions>("loss").beta);
              },
          .couples_samples = true};
}

}  // namespace settrain
