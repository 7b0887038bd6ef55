#include "losses/balanced_softmax.h"

#include "losses/logit_adjusted.h"

namespace settrain {

LossEntry balanced_softmax_entry() {
  return {.name = "balanced_softmax",
          .help = "Cross-entropy of a softmax weighted by the classes' training images (Ren et al., NeurIPS 2020).",
          .formula = "-log(n_y e^{s_y} / sum_j n_j e^{s_j})",
          .keys = {},
          .requirements = {.class_counts = true},
          .make = [](const config::Config&,
                     const LossContext& context) { return std::make_unique<LogitAdjusted>(context.class_counts, 1.0); },
          .corrects_prior = true,
          .takes_mixed_labels = true};
}

}  // namespace settrain
