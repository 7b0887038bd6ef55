#include "losses/assume_negative.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_sigmoid.h>

#include "losses/ops/score_ops.h"

namespace settrain {

at::Tensor AssumeNegative::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  // log(1 - sigma(s)) = log sigma(-s)
  const at::Tensor negatives = at::log_sigmoid(-scores);
  const at::Tensor others = negatives.sum(1).sub(of_label(negatives, input.labels));
  return -at::log_sigmoid(of_label(scores, input.labels)) - others / static_cast<double>(num_classes() - 1);
}

LossEntry assume_negative_entry() {
  return {.name = "assume_negative",
          .help = "Binary cross-entropy with every other class a negative (thesis eq. 5.5).",
          .formula = "-log sigma(s_y) - 1/(L-1) sum_{j != y} log(1 - sigma(s_j))",
          .keys = {},
          .requirements = {},
          .make = [](const config::Config&,
                     const LossContext& context) { return std::make_unique<AssumeNegative>(context.num_classes); },
          .has_sigmoids = true};
}

}  // namespace settrain
