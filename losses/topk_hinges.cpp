// The top-K error and the hinges that stand in for it. y is the label, s_[k] the k-th largest score, and s without y
// the scores of all other classes. Among equal scores the lower class has the rank. At its kink a hinge has the
// gradient 0.
//
// Three of them can be smoothed by normal noise, as noised_topk smooths the calibrated one: the operator that takes the
// scores of a rank becomes its mean over draws of s + epsilon z (Garcin et al., ICML 2022, section 2:
// "out-of-the-box").
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sort.h>

#include "losses/entries.h"
#include "losses/ops/score_ops.h"
#include "losses/ops/shared_keys.h"
#include "losses/ops/smoothed_topk.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

struct HingeOptions {
  int64_t k;
  double epsilon = 0;  // of the smoothing; 0: none
  int64_t num_draws = 0;
};

struct ScaledHingeOptions {
  double alpha;
};

config::Key hinge_size_key() {
  return set_size_key(&HingeOptions::k, 5, "the papers' CIFAR-100 tables");
}

// The keys of hinges that can be smoothed.
config::Keys smoothing_keys() {
  return {config::key("smoothing.epsilon", &HingeOptions::epsilon, 0.0,
                      "Smoothing of the ranks by noise, as noised_topk smooths topk_hinge_calibrated: the standard "
                      "deviation of the noise on the scores; 0 is the plain hinge.")
              .at_least(0)
              .in("scores")
              .by_epoch(),
          config::key("smoothing.num_draws", &HingeOptions::num_draws, 10,
                      "Noise draws per sample of the smoothing. Default: ICML 2022, section 4.4.")
              .at_least(1)
              .at_most(1000)
              .in("draws")};
}

void check_smoothing(const config::Config& config) {
  const bool is_smoothed = config.read<HingeOptions>("loss").epsilon > 0 || !config.has("loss.smoothing.epsilon");
  config.refuse_unread("loss.smoothing.num_draws", is_smoothed, "loss.smoothing.epsilon above 0");
}

class Hinge : public Loss {
 public:
  Hinge(const config::Config& config, const LossContext& context)
      : Loss(config, context), options_(read_with_set_size<HingeOptions>(config, context.num_classes)) {}

 protected:
  bool is_smoothed() const { return options_.epsilon > 0; }

  // [batch, draws, classes] standard normals for the smoothing of `scores`, in their dtype. The kernels of noised_topk,
  // which draw them for few classes only, rank the label among the rest and take one rank.
  at::Tensor noise_for(const at::Tensor& scores, const LossInput& input) const {
    const int64_t batch = scores.size(0), classes = scores.size(1), draws = options_.num_draws;
    if (input.noise) check_shape("noise", input.noise->sizes(), {batch, draws, classes});
    const at::Tensor noise =
        input.noise ? *input.noise : gaussian_noise(input.noise_key, batch, draws, classes, scores.device());
    return noise.to(scores.options());
  }

  // [batch] the K-th largest score of the wrong classes, smoothed where the config asks for it.
  at::Tensor best_wrong(const LossInput& input) const {
    const at::Tensor wrong = without_label(input.output.scores, input.labels);
    if (!is_smoothed()) return ranked(wrong, options_.k);
    return smoothed_topk(wrong, noise_for(wrong, input), options_.k, options_.epsilon).values;
  }

  HingeOptions options_;
};

/// The top-K hinge. Per sample,
///
///     (1 + (s without y)_[K] - s_y)_+
///
/// (Garcin et al., ICML 2022, eq. 4; thesis eq. 4.4; Berrada et al., ICLR 2018, eq. 6). Gradient where the loss is
/// positive: +1 for the K-th best wrong class, -1 for the label. Smoothed, the +1 is shared out among the classes that
/// have the rank in some draw. Not calibrated for the top-K error.
class TopkHinge : public Hinge {
 public:
  using Hinge::Hinge;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    return at::relu(best_wrong(input).sub(of_label(input.output.scores, input.labels)).add(1));
  }
};

/// The top-K hinge on scores over K. Per sample,
///
///     (alpha + ((s without y)_[K] - s_y) / K)_+
///
/// (Berrada et al., ICLR 2018, eq. 8 with the scores over K, as its smoothing in eq. 19 has them: the row tau = 0 of
/// its Table 6): the limit of smoothed_topk_hinge for tau -> 0. Gradient where the loss is positive: +1/K for the K-th
/// best wrong class, -1/K for the label. Smoothed as topk_hinge.
class TopkHingeScaled : public Hinge {
 public:
  TopkHingeScaled(const config::Config& config, const LossContext& context)
      : Hinge(config, context), alpha_(config.read<ScaledHingeOptions>("loss").alpha) {}

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor excess = best_wrong(input).sub(of_label(input.output.scores, input.labels));
    return at::relu(excess.div(static_cast<double>(options_.k)).add(alpha_));
  }

  double alpha_;
};

/// The calibrated top-K hinge. Per sample,
///
///     (1 + s_[K+1] - s_y)_+
///
/// (Garcin et al., ICML 2022, eq. 5; thesis eq. 4.5; Yang and Koyejo, ICML 2020): calibrated for the top-K error.
/// Gradient where the loss is positive: +1 for the (K+1)-th best class, -1 for the label; 0 where these are the same.
class TopkHingeCalibrated : public Hinge {
 public:
  using Hinge::Hinge;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    return at::relu(ranked(scores, options_.k + 1).sub(of_label(scores, input.labels)).add(1));
  }
};

/// The convex top-K hinge. Per sample, with e_y one for the label and zero elsewhere,
///
///     ((1/K) sum_{k <= K} (s + 1 - e_y)_[k] - s_y)_+
///
/// (Garcin et al., ICML 2022, Table 1, "CVX"; Lapin et al., NeurIPS 2015): convex, not calibrated. Gradient where the
/// loss is positive: 1/K for each of the K largest of s + 1 - e_y, minus e_y. Smoothed, the mean of the K largest is
/// taken of s + 1 - e_y + epsilon z and averaged over the draws.
class TopkHingeConvex : public Hinge {
 public:
  using Hinge::Hinge;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor label = of_label(scores, input.labels);
    const at::Tensor raised = scores.add(1).scatter(1, input.labels.unsqueeze(1), label.unsqueeze(1));
    if (is_smoothed()) {
      const at::Tensor largest = smoothed_topk_sum(raised, noise_for(raised, input), options_.k, options_.epsilon);
      return at::relu(largest.div(options_.k).sub(label));
    }
    const at::Tensor order = std::get<1>(at::sort(raised.detach(), /*stable=*/true, /*dim=*/1, /*descending=*/true));
    return at::relu(raised.gather(1, order.slice(1, 0, options_.k)).mean(1).sub(label));
  }
};

/// The top-K error, for which the other losses stand in. Per sample,
///
///     1 if s_[K] > s_y, else 0
///
/// (Garcin et al., ICML 2022, eq. 3; thesis eq. 4.3). A label that ties with the K-th largest score is no error.
/// Gradient: 0 everywhere, so it trains nothing; it is here for figures and comparisons.
class TopkZeroOne : public Hinge {
 public:
  using Hinge::Hinge;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor error = ranked(scores, options_.k).gt(of_label(scores, input.labels)).to(scores.scalar_type());
    // Autograd has a gradient to compute, of zeros; a NaN stays one.
    return error + scores.masked_fill(scores.detach().isinf(), 0).mul(0).sum(1);
  }
};

}  // namespace

LossEntry topk_hinge_entry() {
  return {.name = "topk_hinge",
          .help = "Top-K hinge (Garcin et al., ICML 2022, eq. 4).",
          .formula = "(1 + (s without y)_[K] - s_y)_+",
          .keys = config::joined({hinge_size_key()}, smoothing_keys()),
          .make = construct<TopkHinge>,
          .rule = check_smoothing};
}

LossEntry topk_hinge_scaled_entry() {
  return {.name = "topk_hinge_scaled",
          .help = "Top-K hinge on scores over K (Berrada et al., ICLR 2018, eq. 8; the tau = 0 row of Table 6).",
          .formula = "(alpha + ((s without y)_[K] - s_y)/K)_+",
          .keys = config::joined({hinge_size_key(), config::key("alpha", &ScaledHingeOptions::alpha, 1.0,
                                                                "The margin. Default: ICLR 2018.")
                                                        .at_least(0)
                                                        .by_epoch()},
                                 smoothing_keys()),
          .make = construct<TopkHingeScaled>,
          .rule = check_smoothing};
}

LossEntry topk_hinge_calibrated_entry() {
  return {.name = "topk_hinge_calibrated",
          .help = "Calibrated top-K hinge (Garcin et al., ICML 2022, eq. 5).",
          .formula = "(1 + s_[K+1] - s_y)_+",
          .keys = {hinge_size_key()},
          .make = construct<TopkHingeCalibrated>};
}

LossEntry topk_hinge_convex_entry() {
  return {.name = "topk_hinge_convex",
          .help = "Convex top-K hinge (Garcin et al., ICML 2022, Table 1).",
          .formula = "((1/K) sum_{k <= K} (s + 1 - e_y)_[k] - s_y)_+",
          .keys = config::joined({hinge_size_key()}, smoothing_keys()),
          .make = construct<TopkHingeConvex>,
          .rule = check_smoothing};
}

LossEntry topk_zero_one_entry() {
  return {.name = "topk_zero_one",
          .help = "Top-K error, which has no gradient (Garcin et al., ICML 2022, eq. 3): for figures.",
          .formula = "1 if s_[K] > s_y, else 0",
          .keys = {hinge_size_key()},
          .make = construct<TopkZeroOne>,
          .has_gradient = false};
}

}  // namespace settrain
