// Cross-entropies whose softmax knows how frequent the classes are: logit_adjusted, and balanced_softmax with tau 1.
#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "losses/entries.h"
#include "losses/ops/class_margins.h"
#include "losses/ops/score_ops.h"
#include "src/core/error.h"

namespace settrain {
namespace {

struct LogitAdjustedOptions {
  double tau = 1, scale = 1;
};

struct ZeroCountOptions {
  std::string zero_count_class;
};

config::Key zero_count_key() {
  return config::key(
             "zero_count_class", &ZeroCountOptions::zero_count_class, "excluded",
             "A class without a training image: excluded takes no part, and no sample may have it as its label; "
             "rarest counts it as often as the rarest class; error refuses such data.")
      .one_of({"excluded", "rarest", "error"});
}

// The class counts, those of classes without images as loss.zero_count_class says.
std::vector<int64_t> counts_for_priors(const config::Config& config, std::vector<int64_t> counts) {
  const auto empty = std::find(counts.begin(), counts.end(), 0);
  const auto choice = config.read<ZeroCountOptions>("loss").zero_count_class;
  if (empty == counts.end() || choice == "excluded") return counts;
  if (choice == "error") {
    config.fail("loss.zero_count_class", fmt::format("class {} has no training image, so no prior; remove the class "
                                                     "from the data, or set excluded or rarest",
                                                     empty - counts.begin()));
  }
  int64_t rarest = 0;
  for (const int64_t count : counts) {
    if (count > 0 && (rarest == 0 || count < rarest)) rarest = count;
  }
  std::replace(counts.begin(), counts.end(), int64_t{0}, rarest);
  return counts;
}

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
/// class without training images takes no part where tau > 0 (zero_count_class: excluded); as a label it is a
/// ShapeError on the CPU, and an infinite loss on CUDA. Smooth, no ties, no kink. Gradient: softmax(s + tau log pi) -
/// e_y.
///
/// tau 1 is balanced softmax, -log(n_y e^{s_y} / sum_j n_j e^{s_j}) (Ren et al., "Balanced meta-softmax for long-tailed
/// visual recognition", NeurIPS 2020, eq. 3 and 4).
class LogitAdjusted : public Loss {
 public:
  LogitAdjusted(const config::Config& config, const LossContext& context)
      : LogitAdjusted(config, context, config.read<LogitAdjustedOptions>("loss")) {}
  LogitAdjusted(const config::Config& config, const LossContext& context, const LogitAdjustedOptions& options)
      : LogitAdjusted(config, context, options.scale,
                      scaled_log_priors(counts_for_priors(config, context.class_counts), options.tau)) {}

  double score_scale() const override { return scale_; }

 private:
  LogitAdjusted(const config::Config& config, const LossContext& context, double scale,
                const std::vector<double>& offsets)
      : Loss(config, context), scale_(scale), offsets_(offsets) {
    for (const double offset : offsets) is_excluded_.push_back(std::isinf(offset));
    excludes_some_ = std::find(is_excluded_.begin(), is_excluded_.end(), true) != is_excluded_.end();
  }

  at::Tensor per_sample(const LossInput& input) override {
    if (excludes_some_ && input.labels.is_cpu()) check_not_excluded(input.labels.contiguous());
    return -of_label(adjusted_log_softmax(input.output.scores), input.labels);
  }

  at::Tensor every_label(const LossInput& input) override {
    if (excludes_some_ && input.label_shares.is_cpu()) check_not_excluded_shares(input.label_shares);
    return -adjusted_log_softmax(input.output.scores);
  }

  at::Tensor adjusted_log_softmax(const at::Tensor& scores) const {
    // Differences to the largest, so that an offset is not lost beside large scores.
    at::Tensor differences = scores.sub(scores.detach().amax(1, /*keepdim=*/true));
    if (scale_ != 1) differences = differences * scale_;
    return at::log_softmax(differences + offsets_.of_all(differences), 1);
  }

  void check_not_excluded(const at::Tensor& labels) const {
    const auto* label = labels.const_data_ptr<int64_t>();
    for (int64_t i = 0; i < labels.size(0); ++i) {
      if (is_excluded_[static_cast<size_t>(label[i])]) refuse(i, label[i]);
    }
  }

  void check_not_excluded_shares(const at::Tensor& shares) const {
    for (size_t c = 0; c < is_excluded_.size(); ++c) {
      if (!is_excluded_[c]) continue;
      const at::Tensor of_class = shares.select(1, static_cast<int64_t>(c));
      if (of_class.any().item<bool>()) refuse(of_class.argmax().item<int64_t>(), static_cast<int64_t>(c));
    }
  }

  [[noreturn]] static void refuse(int64_t sample, int64_t category) {
    throw ShapeError(
        fmt::format("labels[{}]: class {} has no training image by the class counts, so it is excluded; "
                    "zero_count_class: rarest takes it in",
                    sample, category));
  }

  double scale_;
  ClassValues offsets_;
  std::vector<bool> is_excluded_;  // [classes]
  bool excludes_some_ = false;
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
                       .above(0),
                   zero_count_key()},
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
          .keys = {zero_count_key()},
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
