#include "losses/bce_positive.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "losses/ops/score_ops.h"

namespace settrain {

at::Tensor BcePositive::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  return nan_where_any(-at::log_sigmoid(of_label(scores, input.labels)), scores);
}

LossEntry bce_positive_entry() {
  return {.name = "bce_positive",
          .help = "Binary cross-entropy of the label alone (thesis eq. 5.6).",
          .formula = "-log sigma(s_y)",
          .keys = {},
          .requirements = {},
          .make = [](const config::Config&,
                     const LossContext& context) { return std::make_unique<BcePositive>(context.num_classes); },
          .has_sigmoids = true};
}

}  // namespace settrain
