// The noised top-K losses without noise: their expectation.
#pragma once

#include "losses/loss.h"
#include "losses/ops/class_margins.h"

namespace settrain {

struct ExactTopkOptions {
  int64_t k;
  double epsilon;
  int64_t nodes;

  /// The declarations of loss.k, loss.epsilon and loss.nodes.
  static config::Keys keys(double default_epsilon, const std::string& source);
  /// Reads them. Throws ConfigError unless k < num_classes.
  static ExactTopkOptions read(const config::Config& config, int64_t num_classes);
};

/// Per sample, z standard normal,
///
///     (margin + E[(s + epsilon z)_[K+1]] - s_y)_+
///
/// (Garcin et al., ICML 2022, eq. 8, 9; thesis eq. 4.8, 4.9, the expectation taken exactly, see exact_smoothed_topk.h;
/// they estimate it by noised_topk). No ties. Gradient where the loss is positive: each class' probability of rank K+1,
/// minus e_y; it sums to 0, and is 0 at the kink. epsilon = 0 is the calibrated hinge.
class ExactTopk : public Loss {
 public:
  ExactTopk(int64_t num_classes, const ExactTopkOptions& options, double margin)
      : Loss(num_classes), options_(options), margin_(margin) {}

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  ExactTopkOptions options_;
  double margin_;
};

/// The same with class margins m (see margins.h) and cosines for scores:
///
///     (scale (m_y + E[(s + epsilon z)_[K+1]] - s_y))_+
///
/// (eq. 13 with the expectation taken exactly).
class ExactTopkImbalanced : public Loss {
 public:
  ExactTopkImbalanced(int64_t num_classes, const ExactTopkOptions& options, ClassMargins margins, double scale)
      : Loss(num_classes), options_(options), margins_(std::move(margins)), scale_(scale) {}

  double score_scale() const override { return scale_; }

 protected:
  at::Tensor per_sample(const LossInput& input) override;

 private:
  ExactTopkOptions options_;
  ClassMargins margins_;
  double scale_;
};

LossEntry exact_topk_entry();
LossEntry exact_topk_imbalanced_entry();

}  // namespace settrain
