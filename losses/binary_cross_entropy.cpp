// Binary cross-entropies: each class has a probability of its own, the logistic function sigma of its score. All are
// smooth, without ties and kinks. log(1 - sigma(s)) is computed as log sigma(-s).
#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "losses/entries.h"
#include "losses/ops/score_ops.h"
#include "losses/ops/shared_keys.h"

namespace settrain {
namespace {

/// Binary cross-entropy that takes every other class for wrong. Per sample,
///
///     -log sigma(s_y) - (1/(L-1)) sum_{j != y} log(1 - sigma(s_j))
///
/// (thesis eq. 5.5). Gradient: sigma(s_y) - 1 for the label, sigma(s_j)/(L-1) for the others; it does not sum to 0, and
/// a shift of all scores changes the loss. (Cole et al., CVPR 2021, divide by L.)
class AssumeNegative : public Loss {
 public:
  using Loss::Loss;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor negatives = at::log_sigmoid(-scores);
    const at::Tensor others = negatives.sum(1).sub(of_label(negatives, input.labels));
    return -at::log_sigmoid(of_label(scores, input.labels)) - others / static_cast<double>(num_classes() - 1);
  }
};

/// Binary cross-entropy of the label alone. Per sample,
///
///     -log sigma(s_y)
///
/// (thesis eq. 5.6). Its minimum has every score at infinity, so it needs a regulariser, as ExpectedPositives has.
/// Gradient: sigma(s_y) - 1 for the label, 0 elsewhere. NaN where any score of the sample is, as with every loss.
class BcePositive : public Loss {
 public:
  using Loss::Loss;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    return nan_where_any(-at::log_sigmoid(of_label(scores, input.labels)), scores);
  }
};

struct ExpectedPositivesOptions {
  int64_t k;
  double beta;
};

/// Binary cross-entropy of the label, with a fixed number of positives expected. With Khat = (1/B) sum_{i, j}
/// sigma(s_ij) the mean number of classes that a batch of B samples calls right,
///
///     mean_i -log sigma(s_i,y_i) + beta (Khat - K)^2
///
/// (thesis eq. 5.7, 5.8; Cole et al., CVPR 2021, whose beta is L times this one). The second term couples the samples
/// of a batch: it is shared out evenly among them, and each batch has its own where gradients of several are
/// accumulated. Gradient of the mean: (sigma(s_iy) - 1)/B for the label, plus 2 beta (Khat - K) sigma'(s_ij)/B for
/// every class.
class ExpectedPositives : public Loss {
 public:
  ExpectedPositives(const config::Config& config, const LossContext& context)
      : Loss(config, context), options_(read_with_set_size<ExpectedPositivesOptions>(config, context.num_classes)) {}

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor excess = scores.sigmoid().sum(1).mean() - static_cast<double>(options_.k);
    return -at::log_sigmoid(of_label(scores, input.labels)) + options_.beta * excess.square();
  }

  ExpectedPositivesOptions options_;
};

/// Binary cross-entropy over all classes, with several labels a sample. With the label set Y of a sample,
///
///     -sum_{j in Y} log sigma(s_j) - sum_{j not in Y} log(1 - sigma(s_j))
///
/// (thesis eq. 6.3), a sum over the classes and not a mean. Gradient: sigma(s) - 1_Y.
class BceMultilabel : public Loss {
 public:
  using Loss::Loss;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor sign = label_indicator(input.label_sets, input.labels, scores) * 2 - 1;
    return -at::log_sigmoid(scores * sign).sum(1);
  }
};

}  // namespace

LossEntry assume_negative_entry() {
  return {.name = "assume_negative",
          .help = "Binary cross-entropy with every other class a negative (thesis eq. 5.5).",
          .formula = "-log sigma(s_y) - 1/(L-1) sum_{j != y} log(1 - sigma(s_j))",
          .make = construct<AssumeNegative>,
          .has_sigmoids = true};
}

LossEntry bce_positive_entry() {
  return {.name = "bce_positive",
          .help = "Binary cross-entropy of the label alone (thesis eq. 5.6).",
          .formula = "-log sigma(s_y)",
          .make = construct<BcePositive>,
          .has_sigmoids = true};
}

LossEntry expected_positive_regularisation_entry() {
  using Options = ExpectedPositivesOptions;
  return {
      .name = "expected_positive_regularisation",
      .help = "Binary cross-entropy of the label, with K positives expected a sample (thesis eq. 5.8).",
      .formula = "-log sigma(s_y) + beta (Khat - K)^2,  Khat = mean over the batch of sum_j sigma(s_j)",
      .keys =
          {config::key(
               "k", &Options::k, 5,
               "Expected number of positives per sample, the target of the regulariser. Less than "
               "the number of classes; the default is lowered where it is not. Default: the papers' CIFAR-100 tables.")
               .at_least(1)
               .in("classes"),
           config::key("beta", &Options::beta, 0.01, "Weight of the regulariser. Default: thesis, table 5.3.")
               .at_least(0)
               .by_epoch()},
      .make = construct<ExpectedPositives>,
      .couples_samples = true,
      .has_sigmoids = true};
}

LossEntry bce_multilabel_entry() {
  return {.name = "bce_multilabel",
          .help = "Binary cross-entropy of every class against the sample's label set (thesis eq. 6.3).",
          .formula = "-sum_{j in Y} log sigma(s_j) - sum_{j not in Y} log(1 - sigma(s_j))",
          .make = construct<BceMultilabel>,
          .takes_label_sets = true,
          .has_sigmoids = true};
}

}  // namespace settrain
