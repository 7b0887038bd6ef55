#include "losses/topk_hinge_calibrated.h"

#include <ATen/ops/relu.h>

#include "losses/ops/score_ops.h"
#include "losses/ops/set_size.h"

namespace settrain {

at::Tensor TopkHingeCalibrated::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  return at::relu(ranked(scores, k_ + 1).sub(of_label(scores, input.labels)).add(1));
}

LossEntry topk_hinge_calibrated_entry() {
  return {.name = "topk_hinge_calibrated",
          .help = "Calibrated top-K hinge (Garcin et al., ICML 2022, eq. 5).",
          .formula = "(1 + s_[K+1] - s_y)_+",
          .keys = {SetSizeOptions::key(5, "the papers' CIFAR-100 tables")},
          .requirements = {},
          .make = [](const config::Config& config, const LossContext& context) {
            return std::make_unique<TopkHingeCalibrated>(context.num_classes,
                                                         read_set_size(config, context.num_classes));
          }};
}

}  // namespace settrain
