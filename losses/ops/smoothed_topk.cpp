#include "losses/ops/smoothed_topk.h"

#include <ATen/ops/add.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/special_ndtr.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/topk.h>
#include <ATen/ops/where.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <numbers>
#include <utility>

#include "losses/kernels/noised_kernels.h"
#include "losses/kernels/smooth_kernels.h"
#include "losses/ops/loss_kernels.h"
#include "losses/ops/polynomials.h"
#include "losses/ops/score_ops.h"
#include "src/core/error.h"
#include "src/core/shape.h"

#if defined(SETTRAIN_HAS_CUDA)
#include <ATen/ops/stack.h>
#endif

namespace settrain {
namespace {

void check_rank(int64_t rank, const at::Tensor& scores) {
  check_shape("scores", scores.sizes(), {kAnySize, kAnySize});
  if (rank >= 1 && rank <= scores.size(1)) return;
  throw ShapeError(fmt::format("rank: expected 1 to {}, the number of classes, got {}", scores.size(1), rank));
}

// The key with the step itself, where the key has it in the memory of the device. Waits for a GPU.
NoiseKey with_known_step(NoiseKey key, at::Device device) {
  if (!key.step_on_device) return key;
  const auto options = at::TensorOptions(device).dtype(at::kLong);
  key.step =
      at::from_blob(const_cast<int64_t*>(std::exchange(key.step_on_device, nullptr)), {}, options).item<int64_t>();
  return key;
}

}  // namespace

at::Tensor gaussian_noise(const NoiseKey& key, int64_t batch, int64_t draws, int64_t classes, at::Device device) {
#if defined(SETTRAIN_HAS_CUDA)
  if (device.is_cuda() && has_loss_kernels(device)) {
    const NoiseCounter first = noise_counter(key, batch);
    at::Tensor noise = at::empty({batch, draws, classes}, at::TensorOptions(device).dtype(at::kFloat));
    on_stream_of(device, [&](CUstream_st* stream) {
      launch_noise(first, key.step_on_device, batch, draws, classes, noise.data_ptr<float>(), stream);
    });
    return noise;
  }
#endif
  const NoiseCounter first = noise_counter(with_known_step(key, device), batch);
  at::Tensor noise = at::empty({batch, draws, classes}, at::kFloat);
  float* out = noise.data_ptr<float>();
  const auto fill_row = SETTRAIN_PICK(instruction_set(), fill_noise_row);
  for_rows(batch, draws * classes, /*numbers_per_task=*/16384, 0, [&](int64_t begin, int64_t end, void* /*workspace*/) {
    for (int64_t row = begin; row < end; ++row) {
      const NoiseCounter counter{first.key, first.position + static_cast<uint32_t>(row), first.step};
      fill_row(counter, draws, classes, out + row * draws * classes);
    }
  });
  return noise.to(device);
}

namespace {

// The noise in the dtype of the scores. Throws ShapeError where it does not fit them.
at::Tensor noise_of(const at::Tensor& scores, const at::Tensor& noise) {
  check_shape("noise", noise.sizes(), {scores.size(0), kAnySize, scores.size(1)});
  if (noise.size(1) == 0) throw ShapeError("noise: expected at least one draw, got shape [batch, 0, classes]");
  return noise.detach().to(scores.options());
}

// [batch] the means of `per_draw` [batch, draws], summed in order; NaN for rows of scores that hold one.
at::Tensor mean_over_draws(const at::Tensor& per_draw, const at::Tensor& scores) {
  const int64_t draws = per_draw.size(1);
  at::Tensor sum = per_draw.select(1, 0);
  for (int64_t draw = 1; draw < draws; ++draw) sum = sum.add(per_draw.select(1, draw));
  return nan_where_any(sum.div(static_cast<double>(draws)), scores);
}

}  // namespace

SmoothedTopk smoothed_topk(const at::Tensor& scores, const at::Tensor& noise, int64_t rank, double epsilon) {
  check_rank(rank, scores);
  const at::Tensor z = noise_of(scores, noise);
  at::Tensor chosen;
  {
    const c10::NoGradGuard no_grad;
    chosen = rank_index(at::add(scores.unsqueeze(1), z, epsilon), rank - 1);
  }
  const at::Tensor chosen_noise = z.gather(2, chosen.unsqueeze(2)).squeeze(2);
  return {mean_over_draws(at::add(scores.gather(1, chosen), chosen_noise, epsilon), scores), chosen};
}

at::Tensor smoothed_topk_sum(const at::Tensor& scores, const at::Tensor& noise, int64_t k, double epsilon) {
  check_rank(k, scores);
  const at::Tensor perturbed = at::add(scores.unsqueeze(1), noise_of(scores, noise), epsilon);
  at::Tensor is_summed;  // [batch, draws, classes]
  {
    const c10::NoGradGuard no_grad;
    const at::Tensor last = rank_index(perturbed, k - 1).unsqueeze(2), smallest = perturbed.gather(2, last);
    const at::Tensor classes = at::arange(scores.size(1), last.options());
    is_summed = perturbed.gt(smallest).logical_or(perturbed.eq(smallest).logical_and(classes.le(last)));
  }
  return mean_over_draws(at::where(is_summed, perturbed, 0).sum(2), scores);
}

GaussLegendre::GaussLegendre(int64_t n) {
  const auto degree = static_cast<double>(n);
  for (int64_t i = 0; i < n; ++i) {
    // Newton's method on the Legendre polynomial of degree n, from a guess near its i-th root.
    double x = -std::cos(std::numbers::pi * (static_cast<double>(i) + 0.75) / (degree + 0.5)), slope = 1;
    for (int round = 0; round < 100; ++round) {
      double before = 1, value = x;
      for (int64_t m = 2; m <= n; ++m) {
        const auto d = static_cast<double>(m);
        before = std::exchange(value, ((2 * d - 1) * x * value - (d - 1) * before) / d);
      }
      slope = degree * (x * value - before) / (x * x - 1);
      const double step = value / slope;
      x -= step;
      if (std::abs(step) < 1e-16) break;
    }
    nodes.push_back(x);
    weights.push_back(2 / ((1 - x * x) * slope * slope));
  }
}

namespace {

// The rule of n nodes, computed once.
const GaussLegendre& gauss_legendre(int64_t n) {
  static std::mutex mutex;
  static std::map<int64_t, GaussLegendre> rules;  // a map never moves its elements
  const std::lock_guard lock(mutex);
  return rules.try_emplace(n, n).first->second;
}

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
// [2, n] nodes and weights on a GPU. Copied once: a copy from the host would stall every step. Never freed, because
// CUDA shuts down before static objects do.
at::Tensor rule_on(at::Device device, const GaussLegendre& rule) {
  static std::mutex mutex;
  static auto& copies = *new std::map<std::pair<int, size_t>, at::Tensor>;
  const std::lock_guard lock(mutex);
  at::Tensor& copy = copies[{device.index(), rule.nodes.size()}];
  if (!copy.defined()) copy = at::stack({at::tensor(rule.nodes), at::tensor(rule.weights)}).to(at::kDouble).to(device);
  return copy;
}
#endif

template <class T>
at::Tensor exact_topk_by_kernel(const at::Tensor& scores, int64_t rank, double epsilon, int64_t nodes) {
  const GaussLegendre& rule = gauss_legendre(nodes);
  return computed_with_gradient<T>(scores, [&](const at::Tensor& rows, T* values, T* gradient) {
    ExactTopkBatch<T> batch{rows.const_data_ptr<T>(), rows.size(0),        rows.size(1), rank, epsilon,
                            rule.nodes.data(),        rule.weights.data(), nodes};
    if (rows.is_cpu()) {
      const auto compute = SETTRAIN_PICK(instruction_set(), exact_topk_rows<T>);
      const int64_t bytes = SETTRAIN_PICK(instruction_set(), exact_topk_workspace)(batch.classes, rank);
      for_rows(batch.batch, batch.classes, /*numbers_per_task=*/2048, bytes,
               [&](int64_t begin, int64_t end, void* workspace) {
                 compute(batch, begin, end, workspace, values, gradient);
               });
    }
#if defined(SETTRAIN_HAS_CUDA)
    if (rows.is_cuda()) {
      const at::Tensor on_device = rule_on(rows.device(), rule);
      batch.nodes = on_device.const_data_ptr<double>();
      batch.weights = batch.nodes + nodes;
      const at::Tensor scratch = at::empty({exact_topk_scratch(batch)}, rows.options().dtype(at::kByte));
      on_stream_of(rows.device(), [&](CUstream_st* stream) {
        launch_exact_topk(batch, values, gradient, scratch.data_ptr(), stream);
      });
    }
#endif
  });
}

}  // namespace

at::Tensor exact_smoothed_topk(const at::Tensor& scores, int64_t rank, double epsilon, int64_t nodes,
                               LossMethod method) {
  check_rank(rank, scores);
  if (epsilon == 0) return ranked(scores, rank);
  if (method == LossMethod::kPlain || !has_exact_kernel(scores, rank))
    return plain_exact_topk(scores, rank, epsilon, nodes);
  return scores.scalar_type() == at::kDouble ? exact_topk_by_kernel<double>(scores, rank, epsilon, nodes)
                                             : exact_topk_by_kernel<float>(scores, rank, epsilon, nodes);
}

}  // namespace settrain
