// Batch statistics of normalisation layers, kept apart while the micro-batches of a step are computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace settrain {

class BatchNorm;
class Model;

/// The running means and variances of a model follow the micro-batches of a step in their order, whichever process
/// computed them: each forward pass records its statistics, and all are replayed at the end of the step.
class BatchStatistics {
 public:
  explicit BatchStatistics(const Model& model);

  /// Means and variances of all layers together; 0 where the model has no such layer.
  int64_t size() const { return size_; }

  /// From now on training forward passes write their statistics to the result, [size] of the layers' dtype, and leave
  /// the running ones alone. Until the next call, or release().
  at::Tensor record();

  /// Forward passes update the running statistics themselves again.
  void release();

  /// Updates the running statistics with those of micro-batches, [micro-batches, size], one after the other.
  void replay(const at::Tensor& rows);

 private:
  std::vector<std::shared_ptr<BatchNorm>> layers_;
  int64_t size_ = 0;
};

}  // namespace settrain
