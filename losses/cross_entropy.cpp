#include "losses/cross_entropy.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/log_softmax.h>

#include "losses/ops/score_ops.h"

namespace settrain {
namespace {

struct CrossEntropyOptions {
  double label_smoothing;
};

}  // namespace

at::Tensor CrossEntropy::per_sample(const LossInput& input) {
  const at::Tensor log_p = at::log_softmax(input.output.scores, 1);
  const at::Tensor of_labels = -of_label(log_p, input.labels);
  if (label_smoothing_ == 0) return of_labels;
  return of_labels * (1 - label_smoothing_) - log_p.mean(1) * label_smoothing_;
}

LossEntry cross_entropy_entry() {
  return {
      .name = "cross_entropy",
      .help = "Cross-entropy of the softmax of the scores.",
      .formula = "-log softmax_y(s)",
      .keys = {config::key("label_smoothing", &CrossEntropyOptions::label_smoothing, 0.0,
                           "Share of the target that is spread evenly over all classes (Szegedy et al., CVPR 2016); "
                           "0 is plain cross-entropy.")
                   .at_least(0)
                   .below(1)},
      .requirements = {},
      .make =
          [](const config::Config& config, const LossContext& context) {
            return std::make_unique<CrossEntropy>(context.num_classes,
                                                  config.read<CrossEntropyOptions>("loss").label_smoothing);
          },
      .takes_mixed_labels = true};
}

}  // namespace settrain
