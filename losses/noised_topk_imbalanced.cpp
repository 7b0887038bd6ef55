#include "losses/noised_topk_imbalanced.h"

#include <ATen/ops/relu.h>
#include <ATen/ops/tensor.h>

#include "losses/margins.h"
#include "src/core/error.h"

namespace settrain {
namespace {

struct ImbalancedOptions {
  double max_margin, scale;
  std::string scale_on, zero_count_class;
};

config::Keys keys() {
  using config::key;
  using Options = ImbalancedOptions;
  config::Keys keys =
      sampled_topk_keys({.k = 5, .epsilon = 0.01, .num_draws = 5}, "ICML 2022, section 4.5, with a normalised head");
  keys.push_back(
      key("max_margin", &Options::max_margin, 0.2,
          "Margin of the rarest class; the others' are smaller by the fourth root of the ratio of their counts. "
          "Default: ICML 2022, section 4.5.")
          .at_least(0)
          .in("scores"));
  keys.push_back(key("scale", &Options::scale, 60.0,
                     "Factor that brings cosines to the size of logits. Default: ICML 2022, section 4.5; the thesis, "
                     "section 4.6.5, calls 50 a good default.")
                     .above(0));
  keys.push_back(
      key("scale_on", &Options::scale_on, "loss",
          "What scale multiplies: the loss, so that margins and epsilon are in cosines (the authors' code), or "
          "the scores before noise and margin (the text of ICML 2022, section 4.5).")
          .one_of({"loss", "scores"}));
  keys.push_back(
      key("zero_count_class", &Options::zero_count_class, "largest_margin",
          "A class without a training image, which the formula gives no margin: takes the largest, or is an error.")
          .one_of({"largest_margin", "error"}));
  return keys;
}

std::unique_ptr<Loss> make(const config::Config& config, const LossContext& context) {
  const auto options = config.read<ImbalancedOptions>("loss");
  const auto& counts = context.class_counts;
  if (static_cast<int64_t>(counts.size()) != context.num_classes) {
    throw DataError("class_counts: expected " + std::to_string(context.num_classes) + ", one a class, got " +
                    std::to_string(counts.size()));
  }
  if (options.zero_count_class == "error") {
    for (size_t j = 0; j < counts.size(); ++j) {
      if (counts[j] > 0) continue;
      config.fail("loss.zero_count_class",
                  "class " + std::to_string(j) +
                      " has no training image, so no margin; remove the class from the data, or "
                      "set largest_margin");
    }
  }
  return std::make_unique<NoisedTopkImbalanced>(context.num_classes, read_sampled_topk(config, context.num_classes),
                                                at::tensor(class_margins(counts, options.max_margin), at::kDouble),
                                                options.scale,
                                                options.scale_on == "scores" ? ScaleOn::kScores : ScaleOn::kLoss);
}

}  // namespace

NoisedTopkImbalanced::NoisedTopkImbalanced(int64_t num_classes, const SampledTopkOptions& topk, at::Tensor margins,
                                           double scale, ScaleOn scale_on)
    : Loss(num_classes),
      topk_(topk),
      margins_(std::move(margins)),
      margins_in_use_(margins_),
      scale_(scale),
      scale_on_(scale_on) {}

at::Tensor NoisedTopkImbalanced::per_sample(const LossInput& input) {
  const bool scale_scores = scale_on_ == ScaleOn::kScores;
  const at::Tensor scores = scale_scores ? input.output.scores.mul(scale_) : input.output.scores;
  if (margins_in_use_.dtype() != scores.dtype() || margins_in_use_.device() != scores.device()) {
    margins_in_use_ = margins_.to(scores.options());
  }
  const at::Tensor of_label = scores.gather(1, input.labels.unsqueeze(1)).squeeze(1);
  const at::Tensor margin = margins_in_use_.index_select(0, input.labels);
  const at::Tensor violation = sampled_topk(scores, input, topk_).sub(of_label).add(margin);
  return at::relu(scale_scores ? violation : violation.mul(scale_));
}

LossEntry noised_topk_imbalanced_entry() {
  return {.name = "noised_topk_imbalanced",
          .help = "Noised top-K loss with larger margins for rarer classes (Garcin et al., ICML 2022, eq. 13).",
          .keys = keys(),
          .requirements = {.normalised_head = true},
          .make = make,
          .stall_advice = kSampledTopkStallAdvice};
}

}  // namespace settrain
