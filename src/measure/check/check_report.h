// What a check of this build against recorded values found.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

namespace settrain {

/// One comparison.
struct CheckRow {
  std::string name;  // what was checked: "noised_topk"
  std::string what;  // the case and the values compared: "ties: per sample, loss, gradient"
  double max_error = 0;
  double tolerance = 0;
  bool passed = false;
  std::string note;  // why it failed, or what was left out
};

/// The larger of two errors. One that is not a number is the largest there is.
inline double worse(double a, double b) {
  return std::isnan(a) || std::isnan(b) ? std::numeric_limits<double>::infinity() : std::max(a, b);
}

}  // namespace settrain
