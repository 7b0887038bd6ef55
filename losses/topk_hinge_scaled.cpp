#include "losses/topk_hinge_scaled.h"

#include <ATen/ops/relu.h>

#include "losses/ops/score_ops.h"
#include "losses/ops/set_size.h"

namespace settrain {
namespace {

struct ScaledOptions {
  double alpha;
};

}  // namespace

at::Tensor TopkHingeScaled::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  const at::Tensor best_wrong = ranked(without_label(scores, input.labels), k_);
  return at::relu(best_wrong.sub(of_label(scores, input.labels)).div(static_cast<double>(k_)).add(alpha_));
}

LossEntry topk_hinge_scaled_entry() {
  return {.name = "topk_hinge_scaled",
          .help = "Top-K hinge on scores over K (Berrada et al., ICLR 2018, eq. 8; the tau = 0 row of Table 6).",
          .formula = "(alpha + ((s without y)_[K] - s_y)/K)_+",
          .keys = {SetSizeOptions::key(5, "the papers' CIFAR-100 tables"),
                   config::key("alpha", &ScaledOptions::alpha, 1.0, "The margin. Default: ICLR 2018.").at_least(0)},
          .requirements = {},
          .make = [](const config::Config& config, const LossContext& context) {
            return std::make_unique<TopkHingeScaled>(context.num_classes, read_set_size(config, context.num_classes),
                                                     config.read<ScaledOptions>("loss").alpha);
          }};
}

}  // namespace settrain
