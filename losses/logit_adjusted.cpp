#include "losses/logit_adjusted.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include <cmath>
#include <numeric>

#include "losses/ops/score_ops.h"

namespace settrain {
namespace {

struct LogitAdjustedOptions {
  double tau;
};

std::vector<double> log_priors(const std::vector<int64_t>& counts, double tau) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::vector<double> offsets;
  for (const int64_t count : counts) {
    offsets.push_back(tau == 0 ? 0 : tau * std::log(static_cast<double>(count) / total));  // -infinity for none
  }
  return offsets;
}

}  // namespace

LogitAdjusted::LogitAdjusted(const std::vector<int64_t>& class_counts, double tau)
    : Loss(static_cast<int64_t>(class_counts.size())), offsets_(log_priors(class_counts, tau)) {}

at::Tensor LogitAdjusted::per_sample(const LossInput& input) {
  // Differences to the largest, so that an offset is not lost beside large scores.
  const at::Tensor scores = input.output.scores.sub(input.output.scores.detach().amax(1, /*keepdim=*/true));
  return -of_label(at::log_softmax(scores + offsets_.of_all(scores), 1), input.labels);
}

LossEntry logit_adjusted_entry() {
  return {.name = "logit_adjusted",
          .help = "Cross-entropy of scores shifted by the log frequencies of the classes (Menon et al., ICLR 2021).",
          .formula = "CE(s + tau log pi, y),  pi_j = n_j / sum_i n_i",
          .keys = {config::key("tau", &LogitAdjustedOptions::tau, 1.0,
                               "Strength of the adjustment: 0 is cross-entropy, 1 is consistent for the balanced "
                               "error (Menon et al., theorem 1).")
                       .at_least(0)},
          .requirements = {.class_counts = true},
          .make =
              [](const config::Config& config, const LossContext& context) {
                return std::make_unique<LogitAdjusted>(context.class_counts,
                                                       config.read<LogitAdjustedOptions>("loss").tau);
              },
          .corrects_prior = true,
          .takes_mixed_labels = true};
}

}  // namespace settrain
