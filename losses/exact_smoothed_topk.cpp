#include "losses/exact_smoothed_topk.h"

#include <ATen/ops/linspace.h>
#include <ATen/ops/special_ndtr.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <string>

#include "losses/polynomials.h"
#include "losses/quadrature.h"
#include "losses/rowwise.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

// Beyond so many standard deviations a normal's density and tail are under 1e-16.
constexpr double kTail = 8.5;

// P(N(t) < rank) for `t` [rows, points]: [rows, points].
at::Tensor probability_of_fewer(const at::Tensor& scores, const at::Tensor& t, int64_t rank, double epsilon) {
  const at::Tensor z = scores.unsqueeze(1).sub(t.unsqueeze(2)).div(epsilon);
  return number_of_events(at::special_ndtr(z), at::special_ndtr(-z), rank - 1).sum(-1);
}

// The classes of a row in descending order, as many as can be of influence in any row.
at::Tensor relevant(const at::Tensor& scores, double lowest) {
  const int64_t most = scores.ge(lowest).sum(1).max().item<int64_t>();
  return std::get<0>(at::topk(scores, most, 1));
}

// [rows] ends of the window in which the probability rises from 0 to 1, on a grid around 0, the score of that rank.
std::pair<at::Tensor, at::Tensor> window(const at::Tensor& scores, int64_t rank, double epsilon) {
  constexpr int64_t kPoints = 65;
  constexpr double kNothing = 1e-15, kWidth = kTail + 1;
  const at::Tensor grid = at::linspace(-kWidth, kWidth, kPoints, scores.options()).mul(epsilon);
  const at::Tensor fewer = probability_of_fewer(scores, grid.unsqueeze(0), rank, epsilon);
  const at::Tensor first = fewer.lt(kNothing).sum(1).sub(1).clamp(0, kPoints - 1);
  const at::Tensor last = fewer.le(1 - kNothing).sum(1).clamp(0, kPoints - 1);
  return {grid.index_select(0, first), grid.index_select(0, last)};
}

at::Tensor integral(const at::Tensor& all, int64_t rank, double epsilon, const GaussLegendre& rule) {
  // Differences to the score of that rank, which are exact where they matter: an epsilon may be small beside the
  // scores.
  const at::Tensor center = std::get<0>(at::topk(all.detach(), rank, 1)).select(1, rank - 1);
  const at::Tensor scores = relevant(all.sub(center.unsqueeze(1)), -2 * (kTail + 1) * epsilon);
  at::Tensor low, high;
  {
    const c10::NoGradGuard no_grad;
    std::tie(low, high) = window(scores.detach(), rank, epsilon);
  }
  const at::Tensor nodes = at::tensor(rule.nodes, all.options().requires_grad(false)),
                   weights = at::tensor(rule.weights, all.options().requires_grad(false));
  const at::Tensor half = high.sub(low).div(2).unsqueeze(1), middle = high.add(low).div(2).unsqueeze(1);
  const at::Tensor fewer = probability_of_fewer(scores, middle.add(half.mul(nodes)), rank, epsilon);
  // center + (a + integral of 1 - fewer)
  return center.add(high.sub(fewer.mul(weights).mul(half).sum(1)));
}

}  // namespace

at::Tensor exact_smoothed_topk(const at::Tensor& scores, int64_t rank, double epsilon, int64_t nodes) {
  check_shape("scores", scores.sizes(), {kAnySize, kAnySize});
  if (rank < 1 || rank > scores.size(1)) {
    throw ShapeError("rank: expected 1 to " + std::to_string(scores.size(1)) + ", the number of classes, got " +
                     std::to_string(rank));
  }
  const GaussLegendre rule(nodes);
  const int64_t doubles = 8 * scores.size(1) * std::max<int64_t>(65, nodes);
  return rowwise(scores, doubles,
                 [&](const at::Tensor& s, int64_t /*first_row*/) { return integral(s, rank, epsilon, rule); });
}

}  // namespace settrain
