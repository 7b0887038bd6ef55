#include "losses/topk_hinge_convex.h"

#include <ATen/ops/relu.h>
#include <ATen/ops/sort.h>

#include "losses/ops/score_ops.h"
#include "losses/ops/set_size.h"

namespace settrain {

at::Tensor TopkHingeConvex::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  const at::Tensor label = of_label(scores, input.labels);
  const at::Tensor raised = scores.add(1).scatter(1, input.labels.unsqueeze(1), label.unsqueeze(1));
  const at::Tensor order = std::get<1>(at::sort(raised.detach(), /*stable=*/true, /*dim=*/1, /*descending=*/true));
  return at::relu(raised.gather(1, order.slice(1, 0, k_)).mean(1).sub(label));
}

LossEntry topk_hinge_convex_entry() {
  return {.name = "topk_hinge_convex",
          .help = "Convex top-K hinge (Garcin et al., ICML 2022, Table 1).",
          .formula = "((1/K) sum_{k <= K} (s + 1 - e_y)_[k] - s_y)_+",
          .keys = {SetSizeOptions::key(5, "the papers' CIFAR-100 tables")},
          .requirements = {},
          .make = [](const config::Config& config, const LossContext& context) {
            return std::make_unique<TopkHingeConvex>(context.num_classes, read_set_size(config, context.num_classes));
          }};
}

}  // namespace settrain
