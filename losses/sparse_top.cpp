#include <ATen/TensorOperators.h>
#include <ATen/ops/where.h>

#include "losses/entries.h"
#include "losses/ops/sparse_top_projection.h"

namespace settrain {
namespace {

/// A multi-label loss whose answer is sparse. With the label set Y of a sample, q the projection of its scores on the
/// top-|Y| simplex (see sparse_top_projection.h), H the classes at 1 and M those strictly between 0 and 1,
///
///     -sum_{k in Y} s_k + sum_{k in H} (s_k - 1/2) + (1/2) sum_{k in M} (s_k^2 - lambda^2) + |Y|/2
///
/// (thesis eq. 6.24, 6.25), computed as <q - 1_Y, s> + (|Y| - |q|^2)/2, which is the same and loses no digits. Convex,
/// at least 0, and 0 exactly where every label's score is at least 1 above all other classes'. Differentiable
/// everywhere, ties included: gradient q - 1_Y, whose kinks are q's. For single labels it is the sparsemax loss
/// (eq. 6.12). A shift of all scores changes nothing.
class SparseTop : public Loss {
 public:
  using Loss::Loss;

 private:
  at::Tensor per_sample(const LossInput& input) override {
    const at::Tensor& scores = input.output.scores;
    const at::Tensor labels = label_indicator(input.label_sets, input.labels, scores);
    const at::Tensor size = labels.sum(1);
    // By the envelope theorem the projection is a constant for the gradient.
    const at::Tensor q = sparse_top_projection(scores.detach(), size.to(at::kLong));
    const at::Tensor s = scores - scores.detach().amax(1, /*keepdim=*/true);
    const at::Tensor difference = q - labels;  // 0 for a class that is masked by a score of -infinity
    return at::where(difference.eq(0), 0, difference * s).sum(1) + (size - q.square().sum(1)) / 2;
  }
};

}  // namespace

LossEntry sparse_top_entry() {
  return {
      .name = "sparse_top",
      .help = "Multi-label loss of the projection on the top-|Y| simplex; sparsemax for one label (thesis eq. 6.25).",
      .formula = "<q - 1_Y, s> + (|Y| - |q|^2)/2,  q = argmin {|s - q|^2 : 0 <= q <= 1, sum q = |Y|}",
      .make = construct<SparseTop>,
      .takes_label_sets = true};
}

}  // namespace settrain
