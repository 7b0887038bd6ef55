#include "losses/ldam.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include "losses/ops/score_ops.h"

namespace settrain {

at::Tensor Ldam::per_sample(const LossInput& input) {
  // Differences to the largest, so that a margin is not lost beside large scores.
  const at::Tensor scores = input.output.scores.sub(input.output.scores.detach().amax(1, /*keepdim=*/true));
  const at::Tensor margin = margins_.of(input.labels, scores).unsqueeze(1);
  const at::Tensor shifted = scores.scatter_add(1, input.labels.unsqueeze(1), margin.neg());
  return -of_label(at::log_softmax(shifted.mul(scale_), 1), input.labels);
}

LossEntry ldam_entry() {
  return {.name = "ldam",
          .help = "Cross-entropy with larger margins for rarer classes, LDAM (Cao et al., NeurIPS 2019).",
          .formula = "CE(scale (s - m_y e_y), y),  m_j = max_margin (n_min/n_j)^(1/4)",
          .keys = ClassMargins::keys(0.2, 40.0, "ICML 2022, section 4.5"),
          .requirements = {.normalised_head = true, .class_counts = true},
          .make =
              [](const config::Config& config, const LossContext& context) {
                return std::make_unique<Ldam>(context.num_classes, ClassMargins::read(config, context),
                                              ClassMargins::read_scale(config));
              },
          .takes_mixed_labels = true};
}

}  // namespace settrain
