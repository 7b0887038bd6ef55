// Cross-entropies whose softmax knows how frequent the classes are: logit_adjusted, and balanced_softmax with tau 1.
#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include <cmath>
#include <numeric>
#include <optional>

#include "losses/entries.h"
#include "losses/ops/class_margins.h"
#include "losses/ops/score_ops.h"

namespace settrain {
namespace {

struct LogitAdjustedOptions {
  double tau = 1, scale = 1;
};

// [classes] tau log pi; -infinity for a class without training images.
std::vector<double> scaled_log_priors(const std::vector<int64_t>& counts, double tau) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::vector<double> offsets;
  for (const int64_t count : counts) {
    offsets.push_back(tau == 0 ? 0 : tau * std::log(static_cast<double>(count) / total));
  }
  return offsets;
}

/// The logit-adjusted softmax cross-entropy (Menon et al., "Long-tail learning via logit adjustment", ICLR 2021). Per
/// sample, the cross-entropy of
///
///     scale s + tau log pi
///
/// at the label, pi_j = n_j / sum_i n_i the classes' shares of the training images (eq. 10). After such training, s
/// alone ranks classes as if all were equally frequent: that is what an evaluation uses. tau 0 is cross-entropy. A
/// class without training images takes no part where tau > 0; as a label it has an infinite loss. Smooth, no ties, no
/// kink. Gradient: softmax(s + tau log pi) - e_y.
///
/// tau 1 is balanced softmax, -log(n_y e^{s_y} / sum_j n_j e^{s_j}) (Ren et al., "Balanced meta-softmax for long-tailed
/// visual recognition", NeurIPS 2020, eq. 3 and 4).
class LogitAdjusted : public Loss {
 public:
  LogitAdjusted(const config::Config& config, const LossContext& context)
      : LogitAdjusted(config, context, config.read<LogitAdjustedOptions>("loss")) {}
  LogitAdjusted(const config::Config& config, const LossContext& context, const LogitAdjustedOptions& options)
      : Loss(config, context), scale_(options.scale), offsets_(scaled_log_priors(context.class_counts, options.tau)) {}

  double score_scale() const override { return scale_; }

 private:
  at::Tensor per_sample(const LossInput& input) override {
    // Differences to the largest, so that an offset is not lost beside large scores.
    at::Tensor scores = input.output.scores.sub(input.output.scores.detach().amax(1, /*keepdim=*/true));
    if (scale_ != 1) scores = scores * scale_;
    return -of_label(at::log_softmax(scores + offsets_.of_all(scores), 1), input.labels);
  }

  double scale_;
  ClassValues offsets_;
};

}  // namespace

LossEntry logit_adjusted_entry() {
  return {.name = "logit_adjusted",
          .help = "Cross-entropy of scores shifted by the log frequencies of the classes (Menon et al., ICLR 2021).",
          .formula = "CE(scale s + tau log pi, y),  pi_j = n_j / sum_i n_i",
          .keys = {config::key("tau", &LogitAdjustedOptions::tau, 1.0,
                               "Strength of the adjustment: 0 is cross-entropy, 1 is consistent for the balanced "
                               "error (Menon et al., theorem 1).")
                       .at_least(0)
                       .by_epoch(),
                   config::key("scale", &LogitAdjustedOptions::scale, 1.0,
                               "Factor of the scores. It brings the cosines of model.head: normalised to the size of "
                               "logits: 25 in LIFT (Shi et al., ICML 2024). Probabilities take it too.")
                       .above(0)},
          .requirements = {.class_counts = true},
          .make = construct<LogitAdjusted>,
          .corrects_prior = true,
          .takes_mixed_labels = true,
          .prior_tau = [](const config::Config& config) {
            return config.has("loss.tau") ? std::optional(config.get<double>("loss.tau")) : std::nullopt;
          }};
}

LossEntry balanced_softmax_entry() {
  return {.name = "balanced_softmax",
          .help = "Cross-entropy of a softmax weighted by the classes' training images (Ren et al., NeurIPS 2020).",
          .formula = "-log(n_y e^{s_y} / sum_j n_j e^{s_j})",
          .requirements = {.class_counts = true},
          .make =
              [](const config::Config& config, const LossContext& context) {
                return std::make_unique<LogitAdjusted>(config, context, LogitAdjustedOptions{});
              },
          .corrects_prior = true,
          .takes_mixed_labels = true,
          .prior_tau = [](const config::Config&) { return std::optional(1.0); }};
}

}  // namespace settrain
