// What a check of this build against recorded values found.
#pragma once

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

}  // namespace settrain
