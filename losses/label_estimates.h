// Estimated labels of every training sample, which a loss trains beside the network.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace settrain {

/// A row of logits for every training sample, float32 and on the CPU.
class LabelEstimates {
 public:
  /// Row i belongs to the sample ids[i]. Its logits are drawn uniformly between those of the probabilities 0.4 and 0.6,
  /// as a function of (seed, id, class); that of labels[i] is the logit of 0.995 (Cole et al.'s code).
  LabelEstimates(std::span<const int64_t> ids, std::span<const int64_t> labels, int64_t num_classes, uint64_t seed);

  /// [samples, classes]
  const at::Tensor& logits() const { return logits_; }

  /// [batch, classes] the rows of these samples ([batch] int64 on the CPU) in the dtype and on the device of `like`, to
  /// be differentiated through. Throws ShapeError for a sample without a row.
  at::Tensor take(const at::Tensor& sample_ids, const at::Tensor& like);

  /// Moves every row that was taken and has a gradient against it, by `lr` times the gradient, and forgets what was
  /// taken.
  void update(double lr);

 private:
  struct Taken {
    at::Tensor rows;    // [batch] int64
    at::Tensor logits;  // [batch, classes], a leaf
  };

  std::unordered_map<int64_t, int64_t> row_of_;  // by sample id
  at::Tensor logits_;
  std::vector<Taken> taken_;
};

}  // namespace settrain
