#include "losses/topk_hinge.h"

#include <ATen/ops/relu.h>

#include "losses/ops/score_ops.h"
#include "losses/ops/set_size.h"

namespace settrain {

at::Tensor TopkHinge::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  return at::relu(ranked(without_label(scores, input.labels), k_).sub(of_label(scores, input.labels)).add(1));
}

LossEntry topk_hinge_entry() {
  return {.name = "topk_hinge",
          .help = "Top-K hinge (Garcin et al., ICML 2022, eq. 4).",
          .formula = "(1 + (s without y)_[K] - s_y)_+",
          .keys = {SetSizeOptions::key(5, "the papers' CIFAR-100 tables")},
          .requirements = {},
          .make = [](const config::Config& config, const LossContext& context) {
            return std::make_unique<TopkHinge>(context.num_classes, read_set_size(config, context.num_classes));
          }};
}

}  // namespace settrain
