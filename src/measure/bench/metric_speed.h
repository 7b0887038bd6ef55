// How fast metrics are computed, beside sorts of the same scores.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/eval/evaluator.h"
#include "src/train/peak_memory.h"

namespace settrain {

/// One way to compute something: the seconds of every round, and the most memory that it took on top of its input,
/// where the system tells that.
struct WorkTimes {
  std::vector<double> seconds;
  std::optional<PeakMemory> extra;
};

struct MetricTimes {
  WorkTimes thresholds;  // average-K's, of the softmax of the scores, for every K
  WorkTimes full_sort;   // at::sort of the same values
  WorkTimes ranks;       // of the labels: all top-K accuracies
  WorkTimes row_topk;    // at::topk of every sample's scores, for the largest K
  WorkTimes row_sort;    // at::sort of every sample's scores
  WorkTimes evaluation;  // every metric of the evaluator, from the scores
};

struct MetricSpeedOptions {
  int64_t samples = 50000, classes = 1000;
  std::vector<double> average_k{1, 2, 5, 10};
  int64_t largest_k = 10;  // of at::topk
  bool sorts = true;       // are measured too
};

/// Measures metrics of random float32 scores, normal with standard deviation 3, always the same on a device.
class MetricSpeed {
 public:
  /// Throws Error where the memory at hand is not enough for what will be measured.
  MetricSpeed(const Evaluator& evaluator, const MetricSpeedOptions& options, at::Device device);

  /// Each way once, one after the other, into `times`; the sorts only where `with_sorts`.
  void measure(bool with_sorts, MetricTimes& times) const;

 private:
  /// One round with `rows` of the samples.
  void measure_rows(int64_t rows, bool with_sorts, MetricTimes& times) const;

  const Evaluator& evaluator_;
  MetricSpeedOptions options_;
  at::Device device_;
  SplitScores split_;
  at::Tensor probabilities_;
};

}  // namespace settrain
