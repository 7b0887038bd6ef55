// The conformal scores of a class (metrics/sets/calibrate.h has the formulas). Calibration and prediction compute them
// by the same operations, so that the image whose score is the threshold is in its own set.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// lac, pas and wpas: -(p factor), by the class' probability `p` and the probability `rest` = 1 - p of all other
/// classes. Takes the smaller of the two, which has all its digits.
inline DoubleDouble class_score(const CalibratedRule& rule, size_t category, double p, double rest) {
  const double factor = rule.class_factor.empty() ? 1 : rule.class_factor[category];
  if (std::isinf(factor)) return -kAlwaysIn;
  return p <= 0.5 ? DoubleDouble(-(p * factor)) : DoubleDouble::sum(-factor, rest * factor);
}

/// aps, raps and saps, minus 1: where an image is all but sure, these scores lie so close to 1 that a double would
/// round them to it, and the probability `behind` a class keeps them apart. next() gives the scores of an image's
/// classes from the most probable one on. They never fall.
class RankedScore {
 public:
  RankedScore(const SetRule& rule, double u)
      : score_(rule.score), lambda_(rule.lambda), k_(static_cast<double>(rule.k)), u_(u) {}

  /// The next class' score, by its probability `p` and the summed probabilities of the classes behind it.
  DoubleDouble next(double p, double behind) {
    ++rank_;
    if (rank_ == 1) behind_first_ = behind;
    DoubleDouble score;
    if (score_ != ConformalScore::kSaps) {
      const double penalty = score_ == ConformalScore::kRaps ? lambda_ * std::max(0.0, rank_ - k_) : 0;
      score = DoubleDouble::sum(penalty, -(behind + u_ * p));
    } else if (rank_ == 1) {
      score = DoubleDouble::sum(u_ - 1, -(u_ * behind_first_));
    } else {
      score = DoubleDouble::sum((rank_ - 2 + u_) * lambda_, -behind_first_);
    }
    return largest_ = std::max(largest_, score);
  }

 private:
  ConformalScore score_;
  double lambda_, k_, u_;
  double rank_ = 0, behind_first_ = 0;
  DoubleDouble largest_ = -kAlwaysIn;
};

/// The u of a rule that is not randomised.
inline double fixed_u(ConformalScore score) {
  return score == ConformalScore::kSaps ? 1 : 0;
}

}  // namespace settrain
