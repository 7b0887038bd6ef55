// Gathers a split's scores batch by batch.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "metrics/metric.h"

namespace settrain {

/// Holds [samples, classes] scores on one device from the start, so that a pass over a split allocates nothing.
class ScoreCollector {
 public:
  /// `dtype` is float32 or float64; batches of another dtype are converted.
  ScoreCollector(int64_t samples, int64_t classes, at::Device device, at::ScalarType dtype = at::kFloat);

  /// Appends a batch: `scores` [batch, classes] floating point, `labels` [batch] int64, on any device. Samples without
  /// a label may carry any number, as long as only their scores are used. Throws ShapeError where a shape differs or
  /// where there are more samples than announced.
  void add(const at::Tensor& scores, const at::Tensor& labels);

  /// Everything that was added. Throws ShapeError unless `left_out` of the announced samples are missing, and what
  /// check_scores() throws.
  SplitScores finish(int64_t left_out = 0) const;

 private:
  SplitScores split_;
  int64_t filled_ = 0;
};

}  // namespace settrain
