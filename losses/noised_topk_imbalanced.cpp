#include "losses/noised_topk_imbalanced.h"

#include "losses/ops/noised_hinge.h"

namespace settrain {
namespace {

struct ImbalancedOptions {
  std::string scale_on;
};

config::Keys keys() {
  config::Keys keys =
      sampled_topk_keys({.k = 5, .epsilon = 0.01, .num_draws = 5}, "ICML 2022, section 4.5, with a normalised head");
  for (config::Key& key : ClassMargins::keys(0.2, 60.0, "ICML 2022, section 4.5")) keys.push_back(std::move(key));
  keys.push_back(
      config::key("scale_on", &ImbalancedOptions::scale_on, "loss",
                  "What scale multiplies: the loss, so that margins and epsilon are in cosines (the authors' "
                  "code), or the scores before noise and margin (the text of ICML 2022, section 4.5).")
          .one_of({"loss", "scores"}));
  return keys;
}

std::unique_ptr<Loss> make(const config::Config& config, const LossContext& context) {
  const bool scores = config.read<ImbalancedOptions>("loss").scale_on == "scores";
  return std::make_unique<NoisedTopkImbalanced>(context.num_classes, read_sampled_topk(config, context.num_classes),
                                                ClassMargins::read(config, context), ClassMargins::read_scale(config),
                                                scores ? ScaleOn::kScores : ScaleOn::kLoss);
}

}  // namespace

at::Tensor NoisedTopkImbalanced::per_sample(const LossInput& input) {
  const bool scale_scores = scale_on_ == ScaleOn::kScores;
  const at::Tensor scores = scale_scores ? input.output.scores.mul(scale_) : input.output.scores;
  return noised_hinge(scores, input, topk_,
                      {.margins = margins_.of(input.labels, scores), .factor = scale_scores ? 1 : scale_});
}

LossEntry noised_topk_imbalanced_entry() {
  return {.name = "noised_topk_imbalanced",
          .help = "Noised top-K loss with larger margins for rarer classes (Garcin et al., ICML 2022, eq. 13).",
          .formula = "(scale (m_y + t - s_y))_+,  m_j = max_margin (n_min/n_j)^(1/4),  t as in noised_topk",
          .keys = keys(),
          .requirements = {.normalised_head = true, .class_counts = true},
          .make = make,
          .stall_advice = kSampledTopkStallAdvice,
          .has_kernels = true};
}

}  // namespace settrain
