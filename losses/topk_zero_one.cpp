#include "losses/topk_zero_one.h"

#include <ATen/TensorOperators.h>

#include "losses/ops/score_ops.h"
#include "losses/ops/set_size.h"

namespace settrain {

at::Tensor TopkZeroOne::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  const at::Tensor error = ranked(scores, k_).gt(of_label(scores, input.labels)).to(scores.scalar_type());
  return error + scores.sum(1) * 0;  // a gradient there is, of zeros
}

LossEntry topk_zero_one_entry() {
  return {.name = "topk_zero_one",
          .help = "Top-K error, which has no gradient (Garcin et al., ICML 2022, eq. 3): for figures.",
          .formula = "1 if s_[K] > s_y, else 0",
          .keys = {SetSizeOptions::key(5, "the papers' CIFAR-100 tables")},
          .requirements = {},
          .make =
              [](const config::Config& config, const LossContext& context) {
                return std::make_unique<TopkZeroOne>(context.num_classes, read_set_size(config, context.num_classes));
              },
          .has_gradient = false};
}

}  // namespace settrain
