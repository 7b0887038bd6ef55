// A comparison for people.
#pragma once

#include <string>
#include <vector>

#include "src/studies/compare/comparison.h"

namespace settrain {

/// Which runs make which setting, the keys that differ, and for each metric the mean of every setting with its interval
/// and the differences from the first; below it what the numbers mean. Every line ends in a newline.
std::string format_comparison(const std::vector<Setting>& settings, const std::vector<MetricComparison>& comparisons);

}  // namespace settrain
