#include "losses/ops/sparse_top_projection.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/argmax.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/sort.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <limits>

#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

void check_input(const at::Tensor& scores, const at::Tensor& k) {
  check_shape("scores", scores.sizes(), {kAnySize, kAnySize});
  check_shape("k", k.sizes(), {scores.size(0)});
  if (scores.scalar_type() != at::kFloat && scores.scalar_type() != at::kDouble) {
    throw ShapeError(fmt::format("scores: expected float32 or float64, got {}", at::toString(scores.scalar_type())));
  }
  if (k.scalar_type() != at::kLong)
    throw ShapeError(fmt::format("k: expected int64, got {}", at::toString(k.scalar_type())));
  // On CUDA reading them back would stall every step.
  if (k.is_cpu() && k.numel() > 0 && (k.min().item<int64_t>() < 0 || k.max().item<int64_t>() > scores.size(1))) {
    throw ShapeError(fmt::format("k: expected 0 to {} for every sample, got {} to {}", scores.size(1),
                                 k.min().item<int64_t>(), k.max().item<int64_t>()));
  }
}

// [batch, 1] the threshold lambda. f(lambda) = sum_j clip(s_j - lambda, 0, 1) is linear between its breakpoints s_j,
// where class j leaves 0 and the slope grows, and s_j - 1, where it reaches 1 and the slope shrinks. From the largest
// down, f grows from 0 to L.
at::Tensor threshold(const at::Tensor& s, const at::Tensor& k) {
  const at::Tensor slope_changes = at::cat({at::ones_like(s), -at::ones_like(s)}, 1);
  const auto [points, order] = at::sort(at::cat({s, s - 1}, 1), /*dim=*/1, /*descending=*/true);
  const at::Tensor slopes = slope_changes.gather(1, order).cumsum(1);
  const int64_t last = points.size(1) - 1;
  const at::Tensor rises = slopes.narrow(1, 0, last) * (points.narrow(1, 0, last) - points.narrow(1, 1, last));
  const at::Tensor f = rises.cumsum(1);  // at the points after the first
  // The first segment that reaches k. Rounding may keep the last one below k; argmax would then answer with the first
  // segment, so the last one counts as reaching k.
  const at::Tensor wanted = k.to(s.dtype()).unsqueeze(1);
  at::Tensor reached = f.ge(wanted);
  reached.select(1, last - 1).fill_(true);
  const at::Tensor segment = reached.to(at::kByte).argmax(1, /*keepdim=*/true);
  const at::Tensor slope = slopes.gather(1, segment), end = points.gather(1, segment + 1);
  const at::Tensor beyond = f.gather(1, segment) - wanted;
  return end + at::where(slope.gt(0), beyond / slope.clamp_min(1), 0);
}

at::Tensor strictly_between(const at::Tensor& q) {
  return q.gt(0).logical_and(q.lt(1));
}

}  // namespace

at::Tensor sparse_top_projection(const at::Tensor& scores, const at::Tensor& k) {
  check_input(scores, k);
  // Differences to the largest, so that large scores cost no digits.
  constexpr double kMasked = -1e100;  // -infinity in sums and products
  const at::Tensor s = (scores.to(at::kDouble) - scores.detach().to(at::kDouble).amax(1, /*keepdim=*/true))
                           .masked_fill(scores.detach().eq(-std::numeric_limits<double>::infinity()), kMasked);
  at::Tensor inside, full;
  {
    const c10::NoGradGuard no_grad;
    const at::Tensor q = (s.detach() - threshold(s.detach(), k)).clamp(0, 1);
    inside = strictly_between(q).to(at::kDouble);
    full = q.ge(1).to(at::kDouble);
  }
  // The same threshold as a function of the scores: sum_M (s_j - lambda) + |H| = k.
  const at::Tensor size = inside.sum(1, /*keepdim=*/true);
  const at::Tensor rest = full.sum(1, /*keepdim=*/true) - k.to(at::kDouble).unsqueeze(1);
  const at::Tensor lambda = ((s * inside).sum(1, /*keepdim=*/true) + rest) / size.clamp_min(1);
  return (full + inside * (s - lambda)).to(scores.dtype());
}

at::Tensor sparse_top_jacobian(const at::Tensor& projection) {
  check_shape("projection", projection.sizes(), {kAnySize, kAnySize});
  const at::Tensor m = strictly_between(projection).to(projection.dtype());
  const at::Tensor size = m.sum(1).clamp_min(1).view({-1, 1, 1});
  return m.diag_embed() - m.unsqueeze(2) * m.unsqueeze(1) / size;
}

}  // namespace settrain
