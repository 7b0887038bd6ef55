// The top-K error and the hinges that stand in for it. y is the label, s_[k] the k-th largest score, and s without y
// the scores of all other classes. Among equal scores the lower class has the rank. At its kink a hinge has the
// gradient 0.
#include <ATen/TensorOperators.h>
#include <ATen/ops/relu.h>
#include <ATen/ops/sort.h>

#include "losses/entries.h"
#include "losses/ops/score_ops.h"
#include "losses/ops/shared_keys.h"

namespace settrain {
namespace {

struct HingeOptions {
  int64_t k;
  double alpha = 0;  // topk_hinge_scaled alone has it
};

config::Key hinge_size_key() {
  return set_size_key(&HingeOptions::k, 5, "the papers' CIFAR-100 tables");
}

class Hinge : public Loss {
 public:
  Hinge(const config::Config& config, const LossContext& context)
      : Loss(config, context), options_(read_with_set_size<HingeOptions>(config, context.num_classes)) {}

 protected:
  HingeOptions options_;
};

/// The top-K hinge. Per sample,
///
///     (1 + (s without y)_[K] - s_y)_+
///
/// (Garcin et al., ICML 2022, eq. 4; thesis eq. 4.4; Berrada et al., ICLR 2018, eq. 6). Gradient where the loss is
/// positive: +1 for the K-th best wrong class, -1 for the label. Not calibrated for the top-K error.
class TopkHinge : public Hinge {
 public:
  using Hinge::Hinge;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor best_wrong = ranked(without_label(scores, input.labels), options_.k);
    return at::relu(best_wrong.sub(of_label(scores, input.labels)).add(1));
  }
};

/// The top-K hinge on scores over K. Per sample,
///
///     (alpha + ((s without y)_[K] - s_y) / K)_+
///
/// (Berrada et al., ICLR 2018, eq. 8 with the scores over K, as its smoothing in eq. 19 has them: the row tau = 0 of
/// its Table 6): the limit of smoothed_topk_hinge for tau -> 0. Gradient where the loss is positive: +1/K for the K-th
/// best wrong class, -1/K for the label.
class TopkHingeScaled : public Hinge {
 public:
  using Hinge::Hinge;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor best_wrong = ranked(without_label(scores, input.labels), options_.k);
    const at::Tensor excess = best_wrong.sub(of_label(scores, input.labels));
    return at::relu(excess.div(static_cast<double>(options_.k)).add(options_.alpha));
  }
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
/// loss is positive: 1/K for each of the K largest of s + 1 - e_y, minus e_y.
class TopkHingeConvex : public Hinge {
 public:
  using Hinge::Hinge;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor label = of_label(scores, input.labels);
    const at::Tensor raised = scores.add(1).scatter(1, input.labels.unsqueeze(1), label.unsqueeze(1));
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
    return error + scores.sum(1) * 0;  // autograd has a gradient to compute, of zeros
  }
};

}  // namespace

LossEntry topk_hinge_entry() {
  return {.name = "topk_hinge",
          .help = "Top-K hinge (Garcin et al., ICML 2022, eq. 4).",
          .formula = "(1 + (s without y)_[K] - s_y)_+",
          .keys = {hinge_size_key()},
          .make = construct<TopkHinge>};
}

LossEntry topk_hinge_scaled_entry() {
  return {.name = "topk_hinge_scaled",
          .help = "Top-K hinge on scores over K (Berrada et al., ICLR 2018, eq. 8; the tau = 0 row of Table 6).",
          .formula = "(alpha + ((s without y)_[K] - s_y)/K)_+",
          .keys = {hinge_size_key(),
                   config::key("alpha", &HingeOptions::alpha, 1.0, "The margin. Default: ICLR 2018.").at_least(0)},
          .make = construct<TopkHingeScaled>};
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
          .keys = {hinge_size_key()},
          .make = construct<TopkHingeConvex>};
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
