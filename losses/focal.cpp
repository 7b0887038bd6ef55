#include "losses/focal.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include <limits>

#include "losses/ops/score_ops.h"

namespace settrain {
namespace {

struct FocalOptions {
  double gamma;
};

}  // namespace

at::Tensor Focal::per_sample(const LossInput& input) {
  const at::Tensor loss = -of_label(at::log_softmax(input.output.scores, 1), input.labels);
  // Where p rounds to 1 the floor cuts the gradient, which is infinity times 0 for gamma < 1.
  const bool is_float = loss.scalar_type() == at::kFloat;
  const double floor = is_float ? std::numeric_limits<float>::min() : std::numeric_limits<double>::min();
  return loss.neg().expm1().neg().clamp_min(floor).pow(gamma_).mul(loss);
}

LossEntry focal_entry() {
  return {.name = "focal",
          .help = "Focal loss, which weights samples down as their probability grows (Lin et al., ICCV 2017).",
          .formula = "(1 - p)^gamma (-log p),  p = softmax_y(s)",
          .keys = {config::key("gamma", &FocalOptions::gamma, 2.0,
                               "Focusing parameter: the larger, the less weight for well-classified samples; 0 is "
                               "cross-entropy. Default: thesis, table 4.5.")
                       .at_least(0)},
          .requirements = {},
          .make =
              [](const config::Config& config, const LossContext& context) {
                return std::make_unique<Focal>(context.num_classes, config.read<FocalOptions>("loss").gamma);
              },
          .takes_mixed_labels = true};
}

}  // namespace settrain
