#include "losses/ops/smoothed_topk.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/add.h>

#include <string>

#include "losses/ops/rank_index.h"
#include "losses/ops/score_ops.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {

SmoothedTopk smoothed_topk(const at::Tensor& scores, const at::Tensor& noise, int64_t rank, double epsilon) {
  check_shape("scores", scores.sizes(), {kAnySize, kAnySize});
  check_shape("noise", noise.sizes(), {scores.size(0), kAnySize, scores.size(1)});
  const int64_t draws = noise.size(1);
  if (draws == 0) throw ShapeError("noise: expected at least one draw, got shape [batch, 0, classes]");
  if (rank < 1 || rank > scores.size(1)) {
    throw ShapeError("rank: expected 1 to " + std::to_string(scores.size(1)) + ", the number of classes, got " +
                     std::to_string(rank));
  }

  const at::Tensor z = noise.detach().to(scores.options());
  at::Tensor chosen;
  {
    const at::NoGradGuard no_grad;
    chosen = rank_index(at::add(scores.unsqueeze(1), z, epsilon), rank - 1);
  }
  const at::Tensor chosen_noise = z.gather(2, chosen.unsqueeze(2)).squeeze(2);
  const at::Tensor perturbed = at::add(scores.gather(1, chosen), chosen_noise, epsilon);
  at::Tensor sum = perturbed.select(1, 0);
  for (int64_t draw = 1; draw < draws; ++draw) sum = sum.add(perturbed.select(1, draw));
  return {nan_where_any(sum.div(static_cast<double>(draws)), scores), chosen};
}

}  // namespace settrain
