#include "losses/ops/exact_smoothed_topk.h"

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/special_ndtr.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <memory>
#include <string>

#include "losses/kernels/exact_topk_kernels.h"
#include "losses/ops/loss_kernels.h"
#include "losses/ops/polynomials.h"
#include "losses/ops/quadrature.h"
#include "losses/ops/rowwise.h"
#include "losses/ops/with_gradient.h"
#include "src/core/error.h"
#include "src/core/shape.h"

#if defined(SETTRAIN_HAS_CUDA)
#include <ATen/ops/stack.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>

#include <map>
#include <mutex>
#endif

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

at::Tensor plain_exact_topk(const at::Tensor& scores, int64_t rank, double epsilon, int64_t nodes) {
  const int64_t doubles = 8 * scores.size(1) * std::max<int64_t>(65, nodes);
  return rowwise(scores, doubles, [&](const at::Tensor& s, int64_t /*first_row*/) {
    return integral(s, rank, epsilon, gauss_legendre(nodes));
  });
}

bool has_exact_kernel(const at::Tensor& scores, int64_t rank) {
#if defined(SETTRAIN_HAS_CUDA)
  if (scores.is_cuda()) return has_loss_kernels(scores.device()) && rank <= kMostExactTopkRank;
#endif
  constexpr int64_t kMostBytes = int64_t{1} << 26;
  return scores.is_cpu() && SETTRAIN_PICK(instruction_set(), exact_topk_workspace)(scores.size(1), rank) <= kMostBytes;
}

#if defined(SETTRAIN_HAS_CUDA)
// [2, n] nodes and weights. Copied once: a copy from the host would stall every step.
at::Tensor rule_on(at::Device device, const GaussLegendre& rule) {
  static std::mutex mutex;
  static auto& copies = *new std::map<std::pair<int, size_t>, at::Tensor>;  // outlives CUDA, so never freed
  const std::lock_guard lock(mutex);
  at::Tensor& copy = copies[{device.index(), rule.nodes.size()}];
  if (!copy.defined()) copy = at::stack({at::tensor(rule.nodes), at::tensor(rule.weights)}).to(at::kDouble).to(device);
  return copy;
}
#endif

template <class T>
at::Tensor by_kernel(const at::Tensor& scores, int64_t rank, double epsilon, int64_t nodes) {
  const at::Tensor rows = scores.detach().contiguous();
  const GaussLegendre& rule = gauss_legendre(nodes);
  ExactTopkBatch<T> batch{rows.const_data_ptr<T>(), rows.size(0),        rows.size(1), rank, epsilon,
                          rule.nodes.data(),        rule.weights.data(), nodes};
  const at::Tensor values = at::empty({batch.batch}, rows.options());
  const at::Tensor gradient = wants_gradient(scores) ? at::empty_like(rows) : at::Tensor();
  T* const values_data = values.data_ptr<T>();
  T* const gradient_data = gradient.defined() ? gradient.data_ptr<T>() : nullptr;
  if (rows.is_cpu()) {
    const auto compute = SETTRAIN_PICK(instruction_set(), exact_topk_rows<T>);
    const auto bytes = static_cast<size_t>(SETTRAIN_PICK(instruction_set(), exact_topk_workspace)(batch.classes, rank));
    at::parallel_for(0, batch.batch, std::max<int64_t>(1, 2048 / batch.classes), [&](int64_t begin, int64_t end) {
      const auto workspace = std::make_unique_for_overwrite<char[]>(bytes);
      compute(batch, begin, end, workspace.get(), values_data, gradient_data);
    });
  }
#if defined(SETTRAIN_HAS_CUDA)
  if (rows.is_cuda()) {
    const c10::cuda::CUDAGuard guard(rows.device());
    const at::Tensor on_device = rule_on(rows.device(), rule);
    batch.nodes = on_device.const_data_ptr<double>();
    batch.weights = batch.nodes + nodes;
    const at::Tensor scratch = at::empty({exact_topk_scratch(batch)}, rows.options().dtype(at::kByte));
    launch_exact_topk(batch, values_data, gradient_data, scratch.data_ptr(), c10::cuda::getCurrentCUDAStream());
  }
#endif
  return gradient.defined() ? with_gradient(scores, values, gradient) : values;
}

}  // namespace

at::Tensor exact_smoothed_topk(const at::Tensor& scores, int64_t rank, double epsilon, int64_t nodes,
                               LossMethod method) {
  check_shape("scores", scores.sizes(), {kAnySize, kAnySize});
  if (rank < 1 || rank > scores.size(1)) {
    throw ShapeError("rank: expected 1 to " + std::to_string(scores.size(1)) + ", the number of classes, got " +
                     std::to_string(rank));
  }
  if (method == LossMethod::kPlain || !has_exact_kernel(scores, rank))
    return plain_exact_topk(scores, rank, epsilon, nodes);
  return scores.scalar_type() == at::kDouble ? by_kernel<double>(scores, rank, epsilon, nodes)
                                             : by_kernel<float>(scores, rank, epsilon, nodes);
}

}  // namespace settrain
