#include "losses/bce_multilabel.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

namespace settrain {

at::Tensor BceMultilabel::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  // log(1 - sigma(s)) is log sigma(-s): a sign for every class.
  const at::Tensor sign = label_indicator(input.label_sets, input.labels, scores) * 2 - 1;
  return -at::log_sigmoid(scores * sign).sum(1);
}

LossEntry bce_multilabel_entry() {
  return {.name = "bce_multilabel",
          .help = "Binary cross-entropy of every class against the sample's label set (thesis eq. 6.3).",
          .formula = "-sum_{j in Y} log sigma(s_j) - sum_{j not in Y} log(1 - sigma(s_j))",
          .keys = {},
          .requirements = {},
          .make = [](const config::Config&,
                     const LossContext& context) { return std::make_unique<BceMultilabel>(context.num_classes); },
          .takes_label_sets = true,
          .has_sigmoids = true};
}

}  // namespace settrain
