#include "losses/cross_entropy.h"

#include <ATen/ops/log_softmax.h>

namespace settrain {

at::Tensor CrossEntropy::per_sample(const LossInput& input) {
  return -at::log_softmax(input.output.scores, 1).gather(1, input.labels.unsqueeze(1)).squeeze(1);
}

LossEntry cross_entropy_entry() {
  return {.name = "cross_entropy",
          .help = "Cross-entropy of the softmax of the scores.",
          .keys = {},
          .requirements = {},
          .make = [](const config::Config&, const LossContext& context) {
            return std::make_unique<CrossEntropy>(context.num_classes);
          }};
}

}  // namespace settrain
