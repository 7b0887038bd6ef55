// Batch statistics of normalisation layers, kept apart while the micro-batches of a step are computed.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace settrain {

class BatchNorm;
class Model;

/// The sum of a tensor over processes, which all call it in the same order with tensors of one shape.
using SumOverProcesses = std::function<at::Tensor(const at::Tensor& mine)>;

/// The running means and variances of a model's trained layers follow the micro-batches of a step in their order,
/// whichever process computed them: each forward pass records its statistics, and all are replayed at the end of the
/// step.
class BatchStatistics {
 public:
  /// `sum`: over the processes that normalise together, see BatchNorm::share_statistics(); empty: each by itself.
  explicit BatchStatistics(const Model& model, SumOverProcesses sum = {});

  /// Whether there is anything to normalise together.
  bool are_shared() const { return sum_ && !layers_.empty(); }

  /// Means and variances of all these layers together; 0 where there is none.
  int64_t size() const { return size_; }

  /// From now on training forward passes write their statistics to the result, [size] of the layers' dtype, and leave
  /// the running ones alone; undefined where there is no layer. Until the next call, or release(). `together`: whether
  /// all processes pass; then they share their statistics, where they are to.
  at::Tensor record(bool together);

  /// Forward passes update the running statistics themselves again, each process by itself.
  void release();

  /// Updates the running statistics with those of micro-batches, [micro-batches, size], one after the other.
  void replay(const at::Tensor& rows);

 private:
  std::vector<std::shared_ptr<BatchNorm>> layers_;
  SumOverProcesses sum_;
  int64_t size_ = 0;
};

}  // namespace settrain
