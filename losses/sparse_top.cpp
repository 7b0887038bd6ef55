#include "losses/sparse_top.h"

#include <ATen/TensorOperators.h>

#include "losses/ops/sparse_top_projection.h"

namespace settrain {

at::Tensor SparseTop::per_sample(const LossInput& input) {
  const at::Tensor& scores = input.output.scores;
  const at::Tensor labels = label_indicator(input.label_sets, input.labels, scores);
  const at::Tensor size = labels.sum(1);
  // By the envelope theorem the projection is a constant for the gradient.
  const at::Tensor q = sparse_top_projection(scores.detach(), size.to(at::kLong));
  const at::Tensor s = scores - scores.detach().amax(1, /*keepdim=*/true);
  return ((q - labels) * s).sum(1) + (size - q.square().sum(1)) / 2;
}

LossEntry sparse_top_entry() {
  return {
      .name = "sparse_top",
      .help = "Multi-label loss of the projection on the top-|Y| simplex; sparsemax for one label (thesis eq. 6.25).",
      .formula = "<q - 1_Y, s> + (|Y| - |q|^2)/2,  q = argmin {|s - q|^2 : 0 <= q <= 1, sum q = |Y|}",
      .keys = {},
      .requirements = {},
      .make = [](const config::Config&,
                 const LossContext& context) { return std::make_unique<SparseTop>(context.num_classes); },
      .takes_label_sets = true};
}

}  // namespace settrain
