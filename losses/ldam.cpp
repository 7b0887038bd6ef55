#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/exp.h>
#include <ATen/ops/log1p.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/scatter.h>

#include <limits>

#include "losses/entries.h"
#include "losses/ops/class_margins.h"
#include "losses/ops/score_ops.h"

namespace settrain {
namespace {

/// The label-distribution-aware margin loss (Cao et al., NeurIPS 2019). Per sample, with cosines s and class margins
/// m_j = max_margin (n_min/n_j)^(1/4) (see class_margins.h), the cross-entropy of
///
///     scale (s - m_y e_y)
///
/// at the label y (Garcin et al., ICML 2022, Table 1; thesis Table 4.1; the scale is the authors' code's). Smooth, no
/// ties, no kink. Gradient: scale (softmax - e_y) of those scores; it sums to 0.
class Ldam : public Loss {
 public:
  Ldam(const config::Config& config, const LossContext& context)
      : Loss(config, context), margins_(ClassMargins::read(config, context)) {}

  double score_scale() const override { return margins_.scale; }

 private:
  at::Tensor per_sample(const LossInput& input) override {
    // Differences to the largest, so that a margin is not lost beside large scores.
    const at::Tensor scores = input.output.scores.sub(input.output.scores.detach().amax(1, /*keepdim=*/true));
    const at::Tensor margin = margins_.margins.of(input.labels, scores).unsqueeze(1);
    const at::Tensor shifted = scores.scatter_add(1, input.labels.unsqueeze(1), margin.neg());
    return -of_label(at::log_softmax(shifted.mul(margins_.scale), 1), input.labels);
  }

  /// With q the softmax of the scaled scores, label j has the loss
  /// -log q_j + scale m_j + log(1 - q_j + q_j e^{-scale m_j}). For the largest q_j, 1 - q_j is the sum of the others,
  /// which has its digits.
  at::Tensor every_label(const LossInput& input) override {
    const at::Tensor scores = input.output.scores.sub(input.output.scores.detach().amax(1, /*keepdim=*/true));
    const at::Tensor log_q = at::log_softmax(scores.mul(margins_.scale), 1);
    const at::Tensor margins = margins_.margins.of_all(scores).mul(margins_.scale);
    constexpr double kNone = -std::numeric_limits<double>::infinity();
    const at::Tensor largest = log_q.argmax(1, /*keepdim=*/true), others = log_q.scatter(1, largest, kNone);
    const at::Tensor log_rest =
        at::log1p(others.exp().neg()).scatter(1, largest, others.logsumexp(1, /*keepdim=*/true));
    return margins - log_q + at::logaddexp(log_q - margins, log_rest);
  }

  ClassMargins margins_;
};

}  // namespace

LossEntry ldam_entry() {
  return {.name = "ldam",
          .help = "Cross-entropy with larger margins for rarer classes, LDAM (Cao et al., NeurIPS 2019).",
          .formula = "CE(scale (s - m_y e_y), y),  m_j = max_margin (n_min/n_j)^(1/4)",
          .keys = ClassMargins::keys(0.2, 40.0, "ICML 2022, section 4.5"),
          .requirements = {.normalised_head = true, .class_counts = true},
          .make = construct<Ldam>,
          .takes_mixed_labels = true};
}

}  // namespace settrain
