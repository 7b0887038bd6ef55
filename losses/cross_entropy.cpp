#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/nll_loss.h>

#include "losses/entries.h"
#include "losses/ops/score_ops.h"

namespace settrain {
namespace {

struct CrossEntropyOptions {
  double label_smoothing;
};

/// Cross-entropy, the loss that the others are compared with. Per sample,
///
///     -log softmax_y(s)
///
/// (Garcin et al., ICML 2022, Table 1; thesis eq. 5.3): smooth, no ties, no kink. Gradient: softmax(s) - e_y. With
/// label smoothing a in [0, 1), the cross-entropy with the distribution (1 - a) e_y + a/L (Szegedy et al., CVPR 2016,
/// section 7), whose least value is above 0; gradient: softmax(s) minus that distribution. It is infinite where a
/// class is masked by -infinity, which has a share of the target then.
class CrossEntropy : public Loss {
 public:
  CrossEntropy(const config::Config& config, const LossContext& context)
      : Loss(config, context), label_smoothing_(config.read<CrossEntropyOptions>("loss").label_smoothing) {}

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor log_p = at::log_softmax(input.output.scores, 1);
    const at::Tensor of_labels = at::nll_loss(log_p, input.labels, /*weight=*/{}, at::Reduction::None);
    if (label_smoothing_ == 0) return of_labels;
    return of_labels * (1 - label_smoothing_) - log_p.mean(1) * label_smoothing_;
  }

  at::Tensor every_label(const LossInput& input) override {
    const at::Tensor log_p = at::log_softmax(input.output.scores, 1);
    if (label_smoothing_ == 0) return -log_p;
    return log_p.neg() * (1 - label_smoothing_) - log_p.mean(1, /*keepdim=*/true) * label_smoothing_;
  }

  double label_smoothing_;
};

}  // namespace

LossEntry cross_entropy_entry() {
  return {
      .name = "cross_entropy",
      .help = "Cross-entropy of the softmax of the scores.",
      .formula = "-log softmax_y(s)",
      .keys = {config::key("label_smoothing", &CrossEntropyOptions::label_smoothing, 0.0,
                           "Share of the target that is spread evenly over all classes (Szegedy et al., CVPR 2016); "
                           "0 is plain cross-entropy.")
                   .at_least(0)
                   .below(1)
                   .by_epoch()},
      .make = construct<CrossEntropy>,
      .takes_mixed_labels = true,
      .prior_tau = [](const config::Config&) { return std::optional(0.0); }};
}

}  // namespace settrain
