// The scores that follow the order of the classes: aps, raps and saps.
#pragma once

#include <algorithm>
#include <cstdint>

#include "metrics/sets/rules/set_rule.h"

namespace settrain {

/// The scores of an image's classes, one after the other from the most probable one, so that calibration and prediction
/// compute them by the same operations. They never fall: the running maximum takes what the last bit of a probability,
/// which need not order as its score does, would change.
class RankedScore {
 public:
  RankedScore(const SetRule& rule, double u)
      : score_(rule.score), lambda_(rule.lambda), k_(static_cast<double>(rule.k)), u_(u) {}

  /// Of the next class, by its probability.
  double next(double p) {
    ++rank_;
    double score{};
    if (score_ == ConformalScore::kSaps) {
      if (rank_ == 1) sum_ = p;
      score = rank_ == 1 ? u_ * p : sum_ + (rank_ - 2 + u_) * lambda_;
    } else {
      sum_ += p;
      score = sum_ - u_ * p;
      if (score_ == ConformalScore::kRaps) score += lambda_ * std::max(0.0, rank_ - k_);
    }
    return largest_ = std::max(largest_, score);
  }

 private:
  ConformalScore score_;
  double lambda_, k_, u_;
  double rank_ = 0, sum_ = 0, largest_ = 0;
};

/// The u of a rule that is not randomised.
inline double fixed_u(ConformalScore score) {
  return score == ConformalScore::kSaps ? 1 : 0;
}

}  // namespace settrain
