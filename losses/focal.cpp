#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include <limits>

#include "losses/entries.h"
#include "losses/ops/score_ops.h"

namespace settrain {
namespace {

struct FocalOptions {
  double gamma;
};

/// The focal loss (Lin et al., "Focal Loss for Dense Object Detection", ICCV 2017). Per sample, with CE = -log
/// softmax_y(s) and p = exp(-CE),
///
///     (1 - p)^gamma CE
///
/// (Garcin et al., ICML 2022, Table 1, prints another expression; this is Lin et al.'s and the authors' code's, without
/// alpha). gamma = 0 is cross-entropy. Smooth, but for p = 1 with gamma < 1, where the code's gradient is NaN; here it
/// is its limit, 0. Gradient: that of cross-entropy times (1 - p)^gamma - gamma p (1 - p)^(gamma - 1) log p.
class Focal : public Loss {
 public:
  Focal(const config::Config& config, const LossContext& context)
      : Loss(config, context), gamma_(config.read<FocalOptions>("loss").gamma) {}

 private:
  at::Tensor per_sample(const LossInput& input) override {
    return focused(-of_label(at::log_softmax(input.output.scores, 1), input.labels));
  }

  at::Tensor every_label(const LossInput& input) override {
    // A class without a share may have an infinite loss, of which 0 times the gradient is NaN.
    return focused(-at::log_softmax(input.output.scores, 1).masked_fill(input.label_shares.eq(0), 0));
  }

  // The focal loss where cross-entropy is `loss`, of any shape.
  at::Tensor focused(const at::Tensor& loss) const {
    // Where p rounds to 1 the floor cuts the gradient, which is infinity times 0 for gamma < 1.
    const bool is_float = loss.scalar_type() == at::kFloat;
    const double floor = is_float ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
    return loss.neg().expm1().neg().clamp_min(floor).pow(gamma_).mul(loss);
  }

  double gamma_;
};

}  // namespace

LossEntry focal_entry() {
  return {.name = "focal",
          .help = "Focal loss, which weights samples down as their probability grows (Lin et al., ICCV 2017).",
          .formula = "(1 - p)^gamma (-log p),  p = softmax_y(s)",
          .keys = {config::key("gamma", &FocalOptions::gamma, 2.0,
                               "Focusing parameter: the larger, the less weight for well-classified samples; 0 is "
                               "cross-entropy. Default: thesis, table 4.5.")
                       .at_least(0)
                       .by_epoch()},
          .make = construct<Focal>,
          .takes_mixed_labels = true};
}

}  // namespace settrain
