#include "src/measure/bench/smoothed_algorithms.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/full.h>
#include <ATen/ops/logaddexp.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace settrain {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

// Stands for log 0: finite even where many are added up in float32, so that no gradient is NaN.
constexpr double kLogOfZero = -1e30;

// [terms, batch, n] polynomials to their products in pairs, up to that degree. All in logarithms.
at::Tensor multiply_pairs(at::Tensor p, int64_t degree) {
  if (p.size(2) % 2 == 1) {
    at::Tensor constant_one = at::full({p.size(0), p.size(1), 1}, kLogOfZero, p.options().requires_grad(false));
    constant_one.select(0, 0).zero_();
    p = at::cat({p, constant_one}, 2);
  }
  const at::Tensor a = p.slice(2, 0, std::nullopt, 2), b = p.slice(2, 1, std::nullopt, 2).flip(0);
  const int64_t d = p.size(0) - 1;
  std::vector<at::Tensor> coefficients;
  for (int64_t m = 0; m <= std::min(2 * d, degree); ++m) {
    const int64_t low = std::max<int64_t>(0, m - d), high = std::min(m, d);
    // a[low .. high] with b[m - low .. m - high], which lie reversed.
    coefficients.push_back(at::logsumexp(a.slice(0, low, high + 1) + b.slice(0, d - m + low, d - m + high + 1), {0}));
  }
  return at::stack(coefficients, 0);
}

// How far the approximation of Definition 1 goes, where there are `n` elements.
int64_t order(int64_t k, int64_t n) {
  return std::min(std::max<int64_t>(1, std::lround(0.2 * static_cast<double>(k))), n - k);
}

// [batch, n] logarithms of the approximation of delta_j of order p.
at::Tensor approximation(const at::Tensor& x, const at::Tensor& log_sigma, int64_t j, int64_t p) {
  const at::Tensor first = log_sigma.select(0, j).unsqueeze(1);
  at::Tensor sum = at::zeros_like(x);
  for (int64_t q = 0; q <= p; ++q) {
    const at::Tensor term = (log_sigma.select(0, j + q).unsqueeze(1) - first - x * static_cast<double>(q)).exp();
    sum = q % 2 == 0 ? sum + term : sum - term;
  }
  return first - x + sum.clamp_min(std::numeric_limits<float>::min()).log();
}

// [batch, n] the derivatives of log sigma_(k-1) and log sigma_k by x.
std::vector<at::Tensor> derivatives(const at::Tensor& x, const at::Tensor& log_sigma, int64_t k, int64_t p) {
  const double precision =
      x.scalar_type() == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
  const auto derivative = [&](const at::Tensor& log_delta, int64_t j) {
    return (x + log_delta - log_sigma.select(0, j).unsqueeze(1)).exp();
  };
  std::vector<at::Tensor> result{at::zeros_like(x)};  // sigma_0 is 1
  at::Tensor log_delta = at::zeros_like(x), unstable = at::zeros_like(x, at::kBool);
  result.push_back(derivative(log_delta, 1));
  for (int64_t j = 2; j <= k; ++j) {
    const at::Tensor minuend = log_sigma.select(0, j - 1).unsqueeze(1);
    const at::Tensor difference = -(x + log_delta - minuend).expm1();  // relative
    unstable = unstable.logical_or(difference.lt(std::sqrt(precision)));
    const at::Tensor exact = minuend + difference.clamp_min(precision).log();
    log_delta = approximation(x, log_sigma, j, p).where(unstable, exact);
    result.push_back(derivative(log_delta, j));
  }
  return {result[static_cast<size_t>(k - 1)], result[static_cast<size_t>(k)]};
}

struct CustomBackward : torch::autograd::Function<CustomBackward> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, int64_t k) {
    const int64_t p = order(k, x.size(1));
    const at::Tensor log_sigma = by_division(x, k + p);
    context->save_for_backward({x, log_sigma});
    context->saved_data["k"] = k;
    context->saved_data["p"] = p;
    return log_sigma.slice(0, k - 1, k + 1).clone();
  }
  static variable_list backward(AutogradContext* context, const variable_list& outer) {
    const variable_list saved = context->get_saved_variables();
    const auto slopes =
        derivatives(saved[0], saved[1], context->saved_data["k"].toInt(), context->saved_data["p"].toInt());
    return {outer[0].select(0, 0).unsqueeze(1) * slopes[0] + outer[0].select(0, 1).unsqueeze(1) * slopes[1],
            at::Tensor()};
  }
};

// [2, batch] logarithms for degrees k - 1 and k.
at::Tensor log_sigmas(SmoothedAlgorithm algorithm, const at::Tensor& x, int64_t k) {
  switch (algorithm) {
    case SmoothedAlgorithm::kSummation:
      return by_summation(x.exp(), k).slice(0, k - 1, k + 1).log();
    case SmoothedAlgorithm::kAutograd:
      return by_division(x, k).slice(0, k - 1, k + 1);
    case SmoothedAlgorithm::kCustomBackward:
      return with_custom_backward(x, k);
  }
  return {};
}

}  // namespace

at::Tensor by_summation(const at::Tensor& e, int64_t degree) {
  const c10::NoGradGuard no_grad;
  const int64_t n = e.size(1);
  const at::Tensor elements = e.t().contiguous();
  at::Tensor sigma = at::zeros({degree + 1, e.size(0)}, e.options().requires_grad(false));
  at::Tensor buffer = at::zeros_like(sigma);
  sigma.select(0, 0).fill_(1);
  sigma.select(0, 1).copy_(elements.select(0, 0));
  for (int64_t i = 2; i <= n; ++i) {
    const int64_t high = std::min(i, degree);
    at::Tensor products = buffer.slice(0, 1, high + 1);
    at::mul_out(products, sigma.slice(0, 0, high), elements.select(0, i - 1));
    sigma.slice(0, 1, high + 1).add_(products);
  }
  return sigma;
}

at::Tensor by_division(const at::Tensor& x, int64_t degree) {
  at::Tensor p = at::stack({-x, at::zeros_like(x)}, 0);
  while (p.size(2) > 1) p = multiply_pairs(p, degree);
  return p.squeeze(2) + x.sum(1);
}

at::Tensor with_custom_backward(const at::Tensor& x, int64_t k) {
  return CustomBackward::apply(x, k);
}

at::Tensor scaled_others(const at::Tensor& scores, const at::Tensor& labels, int64_t k, double tau) {
  const at::Tensor index = at::arange(scores.size(1) - 1, labels.options());
  const at::Tensor others = index.unsqueeze(0) + index.unsqueeze(0).ge(labels.unsqueeze(1));
  return scores.gather(1, others).div(static_cast<double>(k) * tau);
}

at::Tensor smoothed_hinge_by(SmoothedAlgorithm algorithm, const at::Tensor& scores, const at::Tensor& labels, int64_t k,
                             double tau, double alpha) {
  const at::Tensor log_sigma = log_sigmas(algorithm, scaled_others(scores, labels, k, tau), k);
  const at::Tensor of_label = scores.gather(1, labels.unsqueeze(1)).squeeze(1).div(static_cast<double>(k) * tau);
  const at::Tensor z = log_sigma.select(0, 1) - log_sigma.select(0, 0) - of_label + alpha / tau;
  return at::logaddexp(z, at::zeros_like(z)).mul(tau);
}

}  // namespace settrain
