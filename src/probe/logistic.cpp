#include "src/probe/logistic.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cholesky_inverse.h>
#include <ATen/ops/linalg_cholesky.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/mv.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <deque>
#include <utility>
#include <vector>

namespace settrain {
namespace {

constexpr int64_t kLogitsPerBlock = int64_t{1} << 20;  // 4 MiB of float32 stay in the cache between the passes
constexpr size_t kMemory = 10;                         // pairs of steps and changes of the gradient that L-BFGS keeps
constexpr int kShortenings = 30;                       // of one step
constexpr double kEnoughDecrease = 1e-4;               // share of the decrease that the slope promises (Armijo)

double dot_product(const at::Tensor& a, const at::Tensor& b) {
  return a.mul(b).sum(at::kDouble).item<double>();
}

// The inverse of the curvature at W = 0, applied to a gradient. The two parts of the parameters are on different
// scales: the weights have a matrix, the biases one number.
class Preconditioner {
 public:
  Preconditioner(const LogisticObjective& objective, double c, const at::TensorOptions& options)
      : weights_(at::cholesky_inverse(at::linalg_cholesky(objective.curvature(c))).to(options)),
        bias_(static_cast<double>(objective.classes()) / (c * static_cast<double>(objective.images()))) {}

  at::Tensor apply(const at::Tensor& gradient) const {
    at::Tensor step = gradient.mul(bias_);
    const int64_t width = weights_.size(0);
    step.narrow(1, 0, width).copy_(at::mm(gradient.narrow(1, 0, width), weights_));
    return step;
  }

 private:
  at::Tensor weights_;
  double bias_;
};

// The approximate inverse of the second derivative that L-BFGS builds from its last steps (Nocedal & Wright, algorithm
// 7.4), with a preconditioner in place of a multiple of the identity.
class InverseCurvature {
 public:
  explicit InverseCurvature(Preconditioner first) : first_(std::move(first)) {}

  void add(at::Tensor step, at::Tensor change) {
    const double product = dot_product(step, change);
    // The objective is convex, so only rounding gives a product that is not above 0.
    if (!(product > 0)) return;
    scale_ = product / dot_product(change, first_.apply(change));
    pairs_.push_back({std::move(step), std::move(change), product});
    if (pairs_.size() > kMemory) pairs_.pop_front();
  }

  void forget() {
    pairs_.clear();
    scale_ = 1;
  }

  at::Tensor apply(const at::Tensor& gradient) const {
    at::Tensor direction = gradient.clone();
    std::vector<double> shares(pairs_.size());
    for (size_t i = pairs_.size(); i-- > 0;) {
      shares[i] = dot_product(pairs_[i].step, direction) / pairs_[i].product;
      direction.sub_(pairs_[i].change, shares[i]);
    }
    direction = first_.apply(direction).mul_(scale_);
    for (size_t i = 0; i < pairs_.size(); ++i) {
      direction.add_(pairs_[i].step, shares[i] - dot_product(pairs_[i].change, direction) / pairs_[i].product);
    }
    return direction;
  }

  bool is_empty() const { return pairs_.empty(); }

 private:
  struct Pair {
    at::Tensor step, change;
    double product;
  };

  Preconditioner first_;
  double scale_ = 1;
  std::deque<Pair> pairs_;
};

}  // namespace

LogisticObjective::LogisticObjective(at::Tensor features, at::Tensor labels, int64_t classes)
    : features_(std::move(features)),
      labels_(std::move(labels)),
      classes_(classes),
      mean_(features_.mean(0, /*keepdim=*/false, at::kDouble).to(features_.scalar_type())) {}

at::Tensor LogisticObjective::zeros() const {
  return at::zeros({classes_, width() + 1}, features_.options());
}

at::Tensor LogisticObjective::logits(const at::Tensor& parameters, const at::Tensor& features) const {
  const at::Tensor weights = parameters.narrow(1, 0, width());
  const at::Tensor bias = parameters.select(1, width()) - at::mv(weights, mean_);
  return at::addmm(bias, features, weights.t());
}

double LogisticObjective::evaluate(const at::Tensor& parameters, double c, at::Tensor& gradient) const {
  at::Tensor weight_gradient = at::zeros({classes_, width()}, features_.options());
  at::Tensor residuals = at::zeros({classes_}, features_.options().dtype(at::kDouble));
  double log_losses = 0;
  const int64_t block = std::max<int64_t>(256, kLogitsPerBlock / classes_);
  for (int64_t first = 0; first < images(); first += block) {
    const int64_t rows = std::min(block, images() - first);
    const at::Tensor given = features_.narrow(0, first, rows);
    const at::Tensor label = labels_.narrow(0, first, rows).unsqueeze(1);
    at::Tensor values = logits(parameters, given);
    values.sub_(values.amax(1, /*keepdim=*/true));
    const at::Tensor of_label = values.gather(1, label);
    values.exp_();
    const at::Tensor sums = values.sum(1, /*keepdim=*/true);
    log_losses += (sums.log() - of_label).sum(at::kDouble).item<double>();
    values.div_(sums);
    values.scatter_add_(1, label, at::ones({rows, 1}, values.options()).neg_());
    residuals.add_(values.sum(0, /*keepdim=*/false, at::kDouble));
    weight_gradient.addmm_(values.t(), given);
  }
  const at::Tensor weights = parameters.narrow(1, 0, width());
  // The features' mean is in the bias' part: its share is taken out of the weights'.
  const at::Tensor residual = residuals.to(features_.scalar_type());
  weight_gradient.sub_(residual.unsqueeze(1) * mean_.unsqueeze(0));
  gradient.narrow(1, 0, width()).copy_(weight_gradient.mul_(c).add_(weights));
  gradient.select(1, width()).copy_(residual.mul(c));
  return c * log_losses + 0.5 * dot_product(weights, weights);
}

at::Tensor LogisticObjective::curvature(double c) const {
  if (!spread_.defined()) {
    const int64_t enough = std::max<int64_t>(4096, 4 * width());
    const int64_t stride = std::max<int64_t>(1, images() / enough);
    at::Tensor chosen = features_.slice(0, 0, images(), stride).contiguous();
    const double images_each = static_cast<double>(images()) / static_cast<double>(chosen.size(0));
    chosen = chosen - mean_;
    spread_ = at::mm(chosen.t(), chosen).to(at::kDouble).mul_(images_each);
  }
  at::Tensor matrix = spread_ * (c / static_cast<double>(classes_));
  matrix.diagonal().add_(1);
  return matrix;
}

LogisticFit fit_logistic(const LogisticObjective& objective, const LogisticSearch& search, const at::Tensor& start,
                         const std::function<void(int64_t, double)>& after_iteration) {
  LogisticFit fit{.parameters = start.clone()};
  at::Tensor gradient = objective.zeros(), next_gradient = objective.zeros();
  fit.objective = objective.evaluate(fit.parameters, search.c, gradient);
  InverseCurvature inverse(Preconditioner(objective, search.c, gradient.options()));
  while (fit.iterations < search.most_iterations) {
    const at::Tensor direction = inverse.apply(gradient).neg_();
    const double slope = dot_product(gradient, direction);
    // A Newton step lowers a quadratic function by half the slope.
    if (-slope <= 2 * search.tolerance * fit.objective) {
      fit.has_converged = true;
      return fit;
    }
    double length = 1;
    at::Tensor next;
    double objective_there = 0;
    int shortenings = 0;
    for (; shortenings < kShortenings; ++shortenings) {
      next = fit.parameters.add(direction, length);
      objective_there = objective.evaluate(next, search.c, next_gradient);
      const double rise = objective_there - fit.objective;
      if (rise <= kEnoughDecrease * length * slope) break;
      // The minimum of the parabola through both values and the slope, but at most half of the way.
      const double lowest = -slope * length * length / (2 * (rise - slope * length));
      length = std::isfinite(lowest) ? std::clamp(lowest, 0.1 * length, 0.5 * length) : 0.1 * length;
    }
    if (shortenings == kShortenings) {
      // No step is shorter than the rounding of the objective, unless the pairs of steps misled.
      if (inverse.is_empty()) {
        fit.has_converged = true;
        return fit;
      }
      inverse.forget();
      continue;
    }
    ++fit.iterations;
    inverse.add(next - fit.parameters, next_gradient - gradient);
    fit.parameters = next;
    fit.objective = objective_there;
    std::swap(gradient, next_gradient);
    after_iteration(fit.iterations, fit.objective);
  }
  return fit;
}

}  // namespace settrain
