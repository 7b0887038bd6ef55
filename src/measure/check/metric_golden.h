// Golden values of the metrics, as they lie in a file.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "metrics/metric.h"

namespace settrain {

/// Expected numbers of one kind; the values are named as the metrics name theirs. NaN: undefined (null in the file).
struct ExpectedValues {
  std::string what;
  double tolerance;
  std::vector<MetricValue> val;   // of the validation split, with its own thresholds
  std::vector<MetricValue> test;  // of the test split, with the validation split's thresholds
};

struct MetricGolden {
  std::string name;
  config::Integers top_k;
  config::Reals average_k;
  std::vector<int64_t> train_counts;  // [classes]
  SplitScores val, test;              // [samples, classes] float64 class probabilities, to be used as they are
  std::vector<ExpectedValues> expected;
  std::vector<SetSizeHistogram> test_set_sizes;
  std::vector<int64_t> class_counts;  // classes in the test labels: few-, medium-, many-shot, all
};

/// Reads {"cases": [...]}. Throws DataError naming the file and the place in it where something is missing or
/// malformed.
std::vector<MetricGolden> read_metric_golden(const std::filesystem::path& file);

}  // namespace settrain
