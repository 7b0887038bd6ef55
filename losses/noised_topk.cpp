#include "losses/noised_topk.h"

#include "losses/ops/noised_hinge.h"

namespace settrain {
namespace {

struct NoisedTopkOptions {
  double margin;
};

}  // namespace

at::Tensor NoisedTopk::per_sample(const LossInput& input) {
  return noised_hinge(input.output.scores, input, topk_, {.margin = margin_});
}

LossEntry noised_topk_entry() {
  config::Keys keys = sampled_topk_keys({.k = 5, .epsilon = 0.2, .num_draws = 10}, "ICML 2022, section 4.4");
  keys.push_back(config::key("margin", &NoisedTopkOptions::margin, 1.0,
                             "By how much the label's score should exceed the smoothed (k+1)-th largest. Default: ICML "
                             "2022, eq. 10.")
                     .at_least(0)
                     .in("scores"));
  return {.name = "noised_topk",
          .help = "Noised top-K loss, for balanced data (Garcin et al., ICML 2022, eq. 10 to 12).",
          .formula = "(margin + t - s_y)_+,  t = (1/M) sum_m (s + epsilon z_m)_[K+1],  z_m ~ N(0, I)",
          .keys = std::move(keys),
          .requirements = {},
          .make =
              [](const config::Config& config, const LossContext& context) {
                return std::make_unique<NoisedTopk>(context.num_classes, read_sampled_topk(config, context.num_classes),
                                                    config.read<NoisedTopkOptions>("loss").margin);
              },
          .stall_advice = kSampledTopkStallAdvice,
          .has_kernels = true};
}

}  // namespace settrain
