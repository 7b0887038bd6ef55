// The operators of settrain.functional: what the losses are made of, with the gradients that autograd needs. Each
// returns its result and, where asked for, what the backward pass takes; settrain/functional.py gives autograd the
// backward passes.
#include <ATen/TensorOperators.h>
#include <ATen/ops/clamp_min.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/where.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/library.h>

#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <tuple>

#include "losses/ops/loss_kernels.h"
#include "losses/ops/polynomials.h"
#include "losses/ops/smoothed_topk.h"
#include "losses/ops/sparse_top_projection.h"
#include "metrics/average_k_threshold.h"
#include "metrics/split_scores.h"
#include "python/ops/recording.h"
#include "python/ops/value_errors.h"
#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

void check_floats(const char* name, const at::Tensor& tensor) {
  if (tensor.scalar_type() == at::kFloat || tensor.scalar_type() == at::kDouble) return;
  throw ShapeError(std::string(name) + ": expected float32 or float64, got " + at::toString(tensor.scalar_type()));
}

void check_functional_scores(const at::Tensor& scores) {
  check_shape("scores", scores.sizes(), {kAnySize, kAnySize});
  check_floats("scores", scores);
}

void check_epsilon(double epsilon) {
  if (epsilon >= 0 && std::isfinite(epsilon)) return;
  throw ShapeError("epsilon: expected a finite number of at least 0, got " + std::to_string(epsilon));
}

void check_number(const char* name, int64_t value, int64_t smallest, int64_t largest) {
  if (value >= smallest && value <= largest) return;
  throw ShapeError(std::string(name) + ": expected " + std::to_string(smallest) + " to " + std::to_string(largest) +
                   ", got " + std::to_string(value));
}

/// f(scores) [batch], and the gradient of each value by its row: [batch, classes], or [0] where none is asked for.
template <class Function>
std::tuple<at::Tensor, at::Tensor> with_row_gradient(const at::Tensor& scores, bool with_gradient, const Function& f) {
  if (!with_gradient) {
    const at::NoGradGuard no_grad;
    return {f(scores), at::empty({0}, scores.options())};
  }
  const Recording recording;
  const at::Tensor leaf = scores.detach().requires_grad_(), values = f(leaf);
  return {values.detach(), torch::autograd::grad({values.sum()}, {leaf})[0]};
}

/// The noise that the caller gives, checked, or that of (seed, step).
at::Tensor noise_for(const at::Tensor& scores, const std::optional<at::Tensor>& noise,
                     const std::optional<at::Tensor>& step, int64_t seed, int64_t num_draws) {
  if (noise) {
    if (!at::isfinite(*noise).all().item<bool>()) {
      throw ShapeError("noise: expected finite numbers, got a NaN or an infinity");
    }
    return *noise;
  }
  check_number("num_draws", num_draws, 1, 1000);
  NoiseKey key{.seed = static_cast<uint64_t>(seed)};
  // Reading it back from a GPU would stall every step. Kernels read it there.
  const bool on_device = step && scores.is_cuda() && step->device() == scores.device();
  if (on_device) {
    key.step_on_device = step->const_data_ptr<int64_t>();
  } else if (step) {
    key.step = step->item<int64_t>();
  }
  return gaussian_noise(key, scores.size(0), num_draws, scores.size(1), scores.device());
}

/// smoothed_topk_sum() of k where `sum`, else smoothed_topk() of rank k.
std::tuple<at::Tensor, at::Tensor> sampled_topk(const at::Tensor& scores, const std::optional<at::Tensor>& noise,
                                                const std::optional<at::Tensor>& step, int64_t seed, int64_t k,
                                                double epsilon, int64_t num_draws, bool sum, bool with_gradient) {
  return with_value_errors([&] {
    check_functional_scores(scores);
    check_number("k", k, 1, scores.size(1));
    check_epsilon(epsilon);
    const at::Tensor z = noise_for(scores, noise, step, seed, num_draws);
    return with_row_gradient(scores, with_gradient, [&](const at::Tensor& s) {
      return sum ? smoothed_topk_sum(s, z, k, epsilon) : smoothed_topk(s, z, k, epsilon).values;
    });
  });
}

std::tuple<at::Tensor, at::Tensor> exact_topk(const at::Tensor& scores, int64_t k, double epsilon, int64_t nodes,
                                              bool with_gradient) {
  return with_value_errors([&] {
    check_functional_scores(scores);
    check_number("k", k, 1, scores.size(1));
    check_epsilon(epsilon);
    check_number("nodes", nodes, 4, 512);
    return with_row_gradient(scores, with_gradient,
                             [&](const at::Tensor& s) { return exact_smoothed_topk(s, k, epsilon, nodes); });
  });
}

/// The projection, and the indicator of the classes strictly between 0 and 1, found in float64; both NaN in rows with a
/// NaN or a score of +infinity.
std::tuple<at::Tensor, at::Tensor> projection(const at::Tensor& scores, const at::Tensor& k) {
  return with_value_errors([&]() -> std::tuple<at::Tensor, at::Tensor> {
    check_functional_scores(scores);
    const at::NoGradGuard no_grad;
    const at::Tensor q = sparse_top_projection(scores.to(at::kDouble), k);
    const at::Tensor between = q.gt(0).logical_and(q.lt(1)).to(at::kDouble);
    return {q.to(scores.scalar_type()), at::where(q.isnan(), q, between).to(scores.scalar_type())};
  });
}

at::Tensor projection_jacobian(const at::Tensor& scores, const at::Tensor& k) {
  return with_value_errors([&] {
    check_functional_scores(scores);
    const at::NoGradGuard no_grad;
    const at::Tensor q = sparse_top_projection(scores.to(at::kDouble), k);
    const at::Tensor not_known = q.isnan().any(1).view({-1, 1, 1});
    return sparse_top_jacobian(q)
        .masked_fill(not_known, std::numeric_limits<double>::quiet_NaN())
        .to(scores.scalar_type());
  });
}

/// log_elementary_symmetric() with -infinity for the logarithm of 0, in the result too; or elementary_symmetric().
at::Tensor polynomials(const at::Tensor& x, int64_t degree, bool in_logarithms) {
  const at::Tensor doubles = x.to(at::kDouble);
  if (!in_logarithms) return elementary_symmetric(doubles, degree).to(x.scalar_type());
  const at::Tensor log_sigma = log_elementary_symmetric(doubles.clamp_min(kLogOfNothing), degree);
  return log_sigma.masked_fill(log_sigma.detach().lt(kLogOfNothing / 10), -std::numeric_limits<double>::infinity())
      .to(x.scalar_type());
}

at::Tensor symmetric(const at::Tensor& x, int64_t degree, bool in_logarithms) {
  return with_value_errors([&] {
    const std::string name = in_logarithms ? "log_values" : "values";
    check_floats(name.c_str(), x);
    if (x.dim() == 0) throw ShapeError(name + ": expected [..., classes], got 0 dimensions");
    check_number("degree", degree, 0, x.size(-1));
    const at::NoGradGuard no_grad;
    return polynomials(x, degree, in_logarithms);
  });
}

/// The gradient by x of the sum of `outer` times symmetric(), computed anew.
at::Tensor symmetric_gradient(const at::Tensor& outer, const at::Tensor& x, int64_t degree, bool in_logarithms) {
  const Recording recording;
  const at::Tensor leaf = x.detach().requires_grad_();
  return torch::autograd::grad({polynomials(leaf, degree, in_logarithms)}, {leaf}, {outer.detach()})[0];
}

at::Tensor threshold(const at::Tensor& values, double k, bool strict) {
  return with_value_errors([&] {
    if (!at::isfinite(values).all().item<bool>())
      throw ShapeError("values: expected finite numbers, got a NaN or an infinity");
    check_scores("values", values);
    if (!(k > 0) || !std::isfinite(k))
      throw ShapeError("k: expected a finite number above 0, got " + std::to_string(k));
    const std::array<double, 1> ks{k};
    const double lambda = average_k_thresholds(values, ks, strict ? Ties::kStrict : Ties::kKeepAll)[0];
    return at::full({}, lambda, values.options().dtype(at::kDouble));
  });
}

// For tensors without data.
std::tuple<at::Tensor, at::Tensor> row_results_like(const at::Tensor& scores, bool with_gradient) {
  TORCH_CHECK_VALUE(scores.dim() == 2, "scores: expected [batch, classes], got ", scores.dim(), " dimensions");
  return {at::empty_symint({scores.sym_size(0)}, scores.options()),
          with_gradient ? at::empty_symint(scores.sym_sizes(), scores.options()) : at::empty({0}, scores.options())};
}

std::tuple<at::Tensor, at::Tensor> sampled_topk_meta(const at::Tensor& scores, const std::optional<at::Tensor>&,
                                                     const std::optional<at::Tensor>&, int64_t, int64_t, double,
                                                     int64_t, bool, bool with_gradient) {
  return row_results_like(scores, with_gradient);
}

std::tuple<at::Tensor, at::Tensor> exact_topk_meta(const at::Tensor& scores, int64_t, double, int64_t,
                                                   bool with_gradient) {
  return row_results_like(scores, with_gradient);
}

std::tuple<at::Tensor, at::Tensor> projection_meta(const at::Tensor& scores, const at::Tensor&) {
  return {at::empty_symint(scores.sym_sizes(), scores.options()),
          at::empty_symint(scores.sym_sizes(), scores.options())};
}

at::Tensor projection_jacobian_meta(const at::Tensor& scores, const at::Tensor&) {
  return at::empty_symint({scores.sym_size(0), scores.sym_size(1), scores.sym_size(1)}, scores.options());
}

at::Tensor symmetric_meta(const at::Tensor& x, int64_t degree, bool) {
  TORCH_CHECK_VALUE(x.dim() > 0, "values: expected [..., classes], got 0 dimensions");
  c10::SymDimVector sizes(x.sym_sizes());
  sizes.back() = degree + 1;
  return at::empty_symint(sizes, x.options());
}

at::Tensor symmetric_gradient_meta(const at::Tensor&, const at::Tensor& x, int64_t, bool) {
  return at::empty_symint(x.sym_sizes(), x.options());
}

at::Tensor threshold_meta(const at::Tensor& values, double, bool) {
  return at::empty({}, values.options().dtype(at::kDouble));
}

TORCH_LIBRARY_FRAGMENT(settrain, library) {
  library.def(
      "sampled_topk(Tensor scores, Tensor? noise, Tensor? step, int seed, int k, float epsilon, int num_draws, bool sum, "
      "bool with_gradient) -> (Tensor, Tensor)");
  library.def("exact_topk(Tensor scores, int k, float epsilon, int nodes, bool with_gradient) -> (Tensor, Tensor)");
  library.def("sparse_top_projection(Tensor scores, Tensor k) -> (Tensor, Tensor)");
  library.def("sparse_top_jacobian(Tensor scores, Tensor k) -> Tensor");
  library.def("elementary_symmetric(Tensor x, int degree, bool in_logarithms) -> Tensor");
  library.def("elementary_symmetric_gradient(Tensor outer, Tensor x, int degree, bool in_logarithms) -> Tensor");
  library.def("average_k_threshold(Tensor values, float k, bool strict) -> Tensor");
}

void implement_functional(torch::Library& library) {
  library.impl("sampled_topk", sampled_topk);
  library.impl("exact_topk", exact_topk);
  library.impl("sparse_top_projection", projection);
  library.impl("sparse_top_jacobian", projection_jacobian);
  library.impl("elementary_symmetric", symmetric);
  library.impl("elementary_symmetric_gradient", symmetric_gradient);
  library.impl("average_k_threshold", threshold);
}

TORCH_LIBRARY_IMPL(settrain, CPU, library) {
  implement_functional(library);
}

TORCH_LIBRARY_IMPL(settrain, CUDA, library) {
  implement_functional(library);
}

TORCH_LIBRARY_IMPL(settrain, Meta, library) {
  library.impl("sampled_topk", sampled_topk_meta);
  library.impl("exact_topk", exact_topk_meta);
  library.impl("sparse_top_projection", projection_meta);
  library.impl("sparse_top_jacobian", projection_jacobian_meta);
  library.impl("elementary_symmetric", symmetric_meta);
  library.impl("elementary_symmetric_gradient", symmetric_gradient_meta);
  library.impl("average_k_threshold", threshold_meta);
}

}  // namespace
}  // namespace settrain
