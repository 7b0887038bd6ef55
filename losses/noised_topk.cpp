// The noised top-K losses: noised_topk for balanced data, noised_topk_imbalanced for imbalanced data. exact_topk.cpp
// has them without noise.
#include "losses/entries.h"
#include "losses/ops/class_margins.h"
#include "losses/ops/noised_hinge.h"
#include "losses/ops/shared_keys.h"

namespace settrain {
namespace {

struct NoisedTopkOptions {
  double margin;
};

/// Per sample, with t the smoothed (K+1)-th largest score (see smoothed_topk.h),
///
///     (margin + t(s) - s_y)_+
///
/// (Garcin et al., ICML 2022, eq. 10 to 12; thesis eq. 4.10 to 4.12; there margin = 1). Ties go to the lower class.
/// Gradient where the loss is positive: (1/M) times how often each class has rank K+1, minus e_y; it sums to 0. At the
/// kink, where margin + t - s_y is exactly 0, it is 0 (the papers print >=, the authors' code behaves as here). epsilon
/// = 0 is the calibrated hinge (eq. 5).
class NoisedTopk : public Loss {
 public:
  NoisedTopk(const config::Config& config, const LossContext& context)
      : Loss(config, context),
        topk_(read_with_set_size<SampledTopkOptions>(config, context.num_classes)),
        margin_(config.read<NoisedTopkOptions>("loss").margin) {}

 private:
  at::Tensor per_sample(const LossInput& input) override {
    return noised_hinge(input.output.scores, input, topk_, {.margin = margin_});
  }

  SampledTopkOptions topk_;
  double margin_;
};

struct ImbalancedOptions {
  std::string scale_on;
};

/// Per sample, with cosines s, t the smoothed (K+1)-th largest score (see smoothed_topk.h) and class margins m (see
/// class_margins.h),
///
///     (scale (m_y + t(s) - s_y))_+           with scale_on: loss, as the authors' code has it
///     (m_y + t(scale s) - scale s_y)_+       with scale_on: scores, as the paper's text has it
///
/// (Garcin et al., ICML 2022, eq. 13 and section 4.5; thesis eq. 4.13). Margins and epsilon are in units of cosines, or
/// of the scaled scores. Ties go to the lower class. Gradient where the loss is positive: `scale` times ((1/M) times
/// how often each class has rank K+1, minus e_y); it sums to 0. At the kink it is 0.
class NoisedTopkImbalanced : public Loss {
 public:
  NoisedTopkImbalanced(const config::Config& config, const LossContext& context)
      : Loss(config, context),
        topk_(read_with_set_size<SampledTopkOptions>(config, context.num_classes)),
        margins_(ClassMargins::read(config, context)),
        scales_scores_(config.read<ImbalancedOptions>("loss").scale_on == "scores") {}

  double score_scale() const override { return margins_.scale; }

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor scores = scales_scores_ ? input.output.scores.mul(margins_.scale) : input.output.scores;
    return noised_hinge(
        scores, input, topk_,
        {.margins = margins_.margins.of(input.labels, scores), .factor = scales_scores_ ? 1 : margins_.scale});
  }

  SampledTopkOptions topk_;
  ClassMargins margins_;
  bool scales_scores_;
};

// The declarations of loss.k, loss.epsilon and loss.num_draws. `source` says where the values of `of_paper` come from.
config::Keys sampled_topk_keys(const SampledTopkOptions& of_paper, const std::string& source) {
  using Options = SampledTopkOptions;
  return {
      set_size_key(&Options::k, of_paper.k, source),
      noise_key(&Options::epsilon, of_paper.epsilon, source),
      config::key("num_draws", &Options::num_draws, of_paper.num_draws,
                  "Noise draws per sample (M in the thesis, B in the ICML paper). Default: " + source + ".")
          .at_least(1)
          .at_most(1000)
          .in("draws"),
  };
}

}  // namespace

LossEntry noised_topk_entry() {
  return {.name = "noised_topk",
          .help = "Noised top-K loss, for balanced data (Garcin et al., ICML 2022, eq. 10 to 12).",
          .formula = "(margin + t - s_y)_+,  t = (1/M) sum_m (s + epsilon z_m)_[K+1],  z_m ~ N(0, I)",
          .keys = config::joined(sampled_topk_keys({.k = 5, .epsilon = 0.2, .num_draws = 10}, "ICML 2022, section 4.4"),
                                 config::Keys{smoothed_margin_key(&NoisedTopkOptions::margin)}),
          .make = construct<NoisedTopk>,
          .stall_advice = kNoiseStallAdvice,
          .has_kernels = true};
}

LossEntry noised_topk_imbalanced_entry() {
  return {.name = "noised_topk_imbalanced",
          .help = "Noised top-K loss with larger margins for rarer classes (Garcin et al., ICML 2022, eq. 13).",
          .formula = "(scale (m_y + t - s_y))_+,  m_j = max_margin (n_min/n_j)^(1/4),  t as in noised_topk",
          .keys = config::joined(
              sampled_topk_keys({.k = 5, .epsilon = 0.01, .num_draws = 5},
                                "ICML 2022, section 4.5, with a normalised head"),
              ClassMargins::keys(0.2, 60.0, "ICML 2022, section 4.5"),
              config::Keys{config::key("scale_on", &ImbalancedOptions::scale_on, "loss",
                                       "What scale multiplies: the loss, so that margins and epsilon are in cosines "
                                       "(the authors' code), or the scores before noise and margin (the text of ICML "
                                       "2022, section 4.5).")
                               .one_of({"loss", "scores"})}),
          .requirements = {.normalised_head = true, .class_counts = true},
          .make = construct<NoisedTopkImbalanced>,
          .stall_advice = kNoiseStallAdvice,
          .has_kernels = true};
}

}  // namespace settrain
