// The scores that depend on a class' own probability alone: lac, pas and wpas.
#pragma once

#include <cmath>
#include <limits>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// The score of a class with probability `p`. One expression for calibration and prediction, so that the image whose
/// score is the threshold is in its own set.
inline double class_score(const CalibratedRule& rule, size_t category, double p) {
  if (rule.class_factor.empty()) return 1 - p;
  const double factor = rule.class_factor[category];
  return std::isinf(factor) ? -std::numeric_limits<double>::infinity() : -(p * factor);
}

}  // namespace settrain
