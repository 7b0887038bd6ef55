// Multinomial logistic regression on feature vectors, by L-BFGS over all images at once.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace settrain {

/// The objective of logistic regression for weights W [classes, width] and a bias b [classes]:
///
///     C * sum over images of -log softmax(W x + b)[label]  +  1/2 * sum of the squares of W
///
/// It is scikit-learn's LogisticRegression(C=C) with three classes or more. For two classes scikit-learn has one weight
/// vector in place of two, and its C is twice this one.
///
/// A vector of parameters is [classes, width + 1]: W, and last the bias of features from which their mean is taken
/// away: b + W mean. The minimum is the same, and its search is faster.
class LogisticObjective {
 public:
  /// `features` [images, width] float32 or float64, contiguous; `labels` [images] int64 in [0, classes), where every
  /// class has an image; `classes` at least 2.
  LogisticObjective(at::Tensor features, at::Tensor labels, int64_t classes);

  /// The objective, with a float64 sum over images. `gradient` [classes, width + 1] is overwritten.
  double evaluate(const at::Tensor& parameters, double c, at::Tensor& gradient) const;

  /// A float64 matrix [width, width] that the objective's second derivative by one class' weights resembles at W = 0:
  /// C / classes * (covariance of the features, times images) + 1. Large sets are represented by every n-th image.
  at::Tensor curvature(double c) const;

  /// The logits [images, classes] of any images, in the features' dtype.
  at::Tensor logits(const at::Tensor& parameters, const at::Tensor& features) const;

  int64_t images() const { return features_.size(0); }
  int64_t width() const { return features_.size(1); }
  int64_t classes() const { return classes_; }
  at::Tensor zeros() const;

 private:
  at::Tensor features_, labels_;
  int64_t classes_;
  at::Tensor mean_;            // [width], in the features' dtype
  mutable at::Tensor spread_;  // [width, width] float64: sum over images of the centred features' products
};

struct LogisticFit {
  at::Tensor parameters;  // as LogisticObjective takes them
  double objective = 0;
  int64_t iterations = 0;
  bool has_converged = false;  // false: `most_iterations` was reached
};

struct LogisticSearch {
  double c = 1;
  /// The search ends where the next step promises to lower the objective by less than this share of it.
  double tolerance = 1e-6;
  int64_t most_iterations = 1000;
};

/// Minimises the objective, from `start`. `after_iteration(iteration, objective)` may throw.
LogisticFit fit_logistic(const LogisticObjective& objective, const LogisticSearch& search, const at::Tensor& start,
                         const std::function<void(int64_t, double)>& after_iteration);

}  // namespace settrain
