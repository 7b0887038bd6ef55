// The noised top-K losses without noise: their expectation.
#include <ATen/TensorOperators.h>
#include <ATen/ops/isinf.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/where.h>

#include "losses/entries.h"
#include "losses/ops/class_margins.h"
#include "losses/ops/score_ops.h"
#include "losses/ops/shared_keys.h"
#include "losses/ops/smoothed_topk.h"

namespace settrain {
namespace {

struct ExactTopkOptions {
  int64_t k;
  double epsilon;
  int64_t nodes;
};

struct ExactMarginOptions {
  double margin;
};

// [batch] E[(s + epsilon z)_[K+1]] - s_y.
at::Tensor smoothed_excess(const LossInput& input, const ExactTopkOptions& options) {
  const bool is_relative = options.epsilon == kSpreadOfScores;
  const UnitSpread unit = is_relative ? unit_spread(input.output.scores) : UnitSpread{input.output.scores, {}};
  // Before the smoothed score: the backward pass goes the other way around. So it frees the gradient that the smoothed
  // score keeps before it makes one here.
  const at::Tensor label = of_label(unit.scores, input.labels);
  const double epsilon = is_relative ? 1 : options.epsilon;
  const at::Tensor excess =
      exact_smoothed_topk(unit.scores, options.k + 1, epsilon, options.nodes, input.method).sub(label);
  if (!is_relative) return excess;
  // Infinite where masked classes leave too few: 0 times it would be NaN in the gradient of the spread.
  const at::Tensor is_infinite = excess.isinf();
  return at::where(is_infinite, excess, excess.masked_fill(is_infinite, 0).mul(unit.spread));
}

/// Per sample, z standard normal,
///
///     (margin + E[(s + epsilon z)_[K+1]] - s_y)_+
///
/// (Garcin et al., ICML 2022, eq. 8, 9; thesis eq. 4.8, 4.9, the expectation taken exactly, see smoothed_topk.h; they
/// estimate it by noised_topk). No ties. Gradient where the loss is positive: each class' probability of rank K+1,
/// minus e_y; it sums to 0, and is 0 at the kink. epsilon = 0 is the calibrated hinge.
class ExactTopk : public Loss {
 public:
  ExactTopk(const config::Config& config, const LossContext& context)
      : Loss(config, context),
        options_(read_with_set_size<ExactTopkOptions>(config, context.num_classes)),
        margin_(config.read<ExactMarginOptions>("loss").margin) {}

 private:
  at::Tensor per_sample(const LossInput& input) override {
    return at::relu(smoothed_excess(input, options_).add(margin_));
  }

  ExactTopkOptions options_;
  double margin_;
};

/// The same with class margins m (see class_margins.h) and cosines for scores:
///
///     (scale (m_y + E[(s + epsilon z)_[K+1]] - s_y))_+
///
/// (eq. 13 with the expectation taken exactly).
class ExactTopkImbalanced : public Loss {
 public:
  ExactTopkImbalanced(const config::Config& config, const LossContext& context)
      : Loss(config, context),
        options_(read_with_set_size<ExactTopkOptions>(config, context.num_classes)),
        margins_(ClassMargins::read(config, context)) {}

  double score_scale() const override { return margins_.scale; }

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor margin = margins_.margins.of(input.labels, input.output.scores);
    return at::relu(smoothed_excess(input, options_).add(margin).mul(margins_.scale));
  }

  ExactTopkOptions options_;
  ClassMargins margins_;
};

// The declarations of loss.k, loss.epsilon and loss.nodes.
config::Keys exact_topk_keys(double paper_epsilon, const std::string& source) {
  using Options = ExactTopkOptions;
  return {set_size_key(&Options::k, 5, source), noise_key(&Options::epsilon, paper_epsilon, source),
          config::key("nodes", &Options::nodes, 48,
                      "Points of the quadrature: 32 are right to float32's last digit, 64 to float64's.")
              .at_least(4)
              .at_most(512)
              .in("points")};
}

}  // namespace

LossEntry exact_topk_entry() {
  return {.name = "exact_topk",
          .help = "Noised top-K loss with the expectation taken exactly (Garcin et al., ICML 2022, eq. 8, 9).",
          .formula = "(margin + E[(s + epsilon z)_[K+1]] - s_y)_+,  z ~ N(0, I)",
          .keys = config::joined(exact_topk_keys(0.2, "ICML 2022, section 4.4"),
                                 config::Keys{smoothed_margin_key(&ExactMarginOptions::margin)}),
          .make = construct<ExactTopk>,
          .stall_advice = kNoiseStallAdvice,
          .has_kernels = true};
}

LossEntry exact_topk_imbalanced_entry() {
  return {
      .name = "exact_topk_imbalanced",
      .help = "Exact noised top-K loss with larger margins for rarer classes (Garcin et al., ICML 2022, eq. 8, 9, 13).",
      .formula = "(scale (m_y + E[(s + epsilon z)_[K+1]] - s_y))_+,  m_j = max_margin (n_min/n_j)^(1/4)",
      .keys = config::joined(exact_topk_keys(0.01, "ICML 2022, section 4.5, with a normalised head"),
                             ClassMargins::keys(0.2, 60.0, "ICML 2022, section 4.5")),
      .requirements = {.normalised_head = true, .class_counts = true},
      .make = construct<ExactTopkImbalanced>,
      .stall_advice = kNoiseStallAdvice,
      .has_kernels = true};
}

}  // namespace settrain
