#include "losses/exact_topk.h"

#include <ATen/ops/relu.h>

#include "losses/ops/exact_smoothed_topk.h"
#include "losses/ops/score_ops.h"
#include "losses/ops/set_size.h"

namespace settrain {
namespace {

struct MarginOptions {
  double margin;
};

at::Tensor smoothed(const LossInput& input, const ExactTopkOptions& options) {
  const at::Tensor& scores = input.output.scores;
  if (options.epsilon == 0) return ranked(scores, options.k + 1);
  return exact_smoothed_topk(scores, options.k + 1, options.epsilon, options.nodes, input.method);
}

}  // namespace

config::Keys ExactTopkOptions::keys(double default_epsilon, const std::string& source) {
  using Options = ExactTopkOptions;
  return {set_size_key(&Options::k, 5, source),
          config::key("epsilon", &Options::epsilon, default_epsilon,
                      "Standard deviation of the noise over which the expectation is taken; 0 is the calibrated hinge. "
                      "Default: " +
                          source + ".")
              .at_least(0)
              .in("scores"),
          config::key("nodes", &Options::nodes, 48,
                      "Points of the quadrature: 32 are right to float32's last digit, 64 to float64's.")
              .at_least(4)
              .at_most(512)
              .in("points")};
}

ExactTopkOptions ExactTopkOptions::read(const config::Config& config, int64_t num_classes) {
  const auto options = config.read<ExactTopkOptions>("loss");
  check_set_size(config, options.k, num_classes);
  return options;
}

at::Tensor ExactTopk::per_sample(const LossInput& input) {
  // Before `smoothed`: the backward pass goes the other way around, and so frees the gradient that is kept there before
  // it makes one here.
  const at::Tensor labels = of_label(input.output.scores, input.labels);
  return at::relu(smoothed(input, options_).sub(labels).add(margin_));
}

at::Tensor ExactTopkImbalanced::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  const at::Tensor margin = margins_.of(input.labels, scores);
  const at::Tensor labels = of_label(scores, input.labels);  // see above
  return at::relu(smoothed(input, options_).sub(labels).add(margin).mul(scale_));
}

LossEntry exact_topk_entry() {
  config::Keys keys = ExactTopkOptions::keys(0.2, "ICML 2022, section 4.4");
  keys.push_back(config::key("margin", &MarginOptions::margin, 1.0,
                             "By how much the label's score should exceed the smoothed (k+1)-th largest. Default: ICML "
                             "2022, eq. 10.")
                     .at_least(0)
                     .in("scores"));
  return {.name = "exact_topk",
          .help = "Noised top-K loss with the expectation taken exactly (Garcin et al., ICML 2022, eq. 8, 9).",
          .formula = "(margin + E[(s + epsilon z)_[K+1]] - s_y)_+,  z ~ N(0, I)",
          .keys = std::move(keys),
          .requirements = {},
          .make =
              [](const config::Config& config, const LossContext& context) {
                return std::make_unique<ExactTopk>(context.num_classes,
                                                   ExactTopkOptions::read(config, context.num_classes),
                                                   config.read<MarginOptions>("loss").margin);
              },
          .has_kernels = true};
}

LossEntry exact_topk_imbalanced_entry() {
  config::Keys keys = ExactTopkOptions::keys(0.01, "ICML 2022, section 4.5, with a normalised head");
  for (config::Key& key : ClassMargins::keys(0.2, 60.0, "ICML 2022, section 4.5")) keys.push_back(std::move(key));
  return {
      .name = "exact_topk_imbalanced",
      .help = "Exact noised top-K loss with larger margins for rarer classes (Garcin et al., ICML 2022, eq. 8, 9, 13).",
      .formula = "(scale (m_y + E[(s + epsilon z)_[K+1]] - s_y))_+,  m_j = max_margin (n_min/n_j)^(1/4)",
      .keys = std::move(keys),
      .requirements = {.normalised_head = true, .class_counts = true},
      .make =
          [](const config::Config& config, const LossContext& context) {
            return std::make_unique<ExactTopkImbalanced>(
                context.num_classes, ExactTopkOptions::read(config, context.num_classes),
                ClassMargins::read(config, context), ClassMargins::read_scale(config));
          },
      .has_kernels = true};
}

}  // namespace settrain
