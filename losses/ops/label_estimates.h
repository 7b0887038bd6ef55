// Estimated labels of every training sample, which a loss trains beside the network.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace settrain {

/// A row of logits for every training sample, float32 and on the CPU.
class LabelEstimates {
 public:
  /// Row i belongs to the sample ids[i]. Its logits are drawn uniformly between those of the probabilities 0.4 and 0.6,
  /// as a function of (seed, id, class); that of labels[i] is the logit of 0.995 (Cole et al.'s code).
  /// They are drawn when they are first asked for, since evaluating a run does not take them.
  LabelEstimates(std::vector<int64_t> ids, std::vector<int64_t> labels, int64_t num_classes, uint64_t seed)
      : ids_(std::move(ids)), labels_(std::move(labels)), num_classes_(num_classes), seed_(seed) {}

  /// [samples, classes]
  const at::Tensor& logits();

  /// [batch, classes] the rows of these samples ([batch] int64 on the CPU) in the dtype and on the device of `like`, to
  /// be differentiated through; remembered until update(). Throws ShapeError for a sample without a row.
  at::Tensor take(const at::Tensor& sample_ids, const at::Tensor& like);

  /// Moves every row that was taken and has a gradient against it, by `lr` times the gradient, and forgets what was
  /// taken.
  void update(double lr);

 private:
  struct Taken {
    at::Tensor rows;    // [batch] int64
    at::Tensor logits;  // [batch, classes], a leaf
  };

  void draw();

  std::vector<int64_t> ids_, labels_;
  int64_t num_classes_;
  uint64_t seed_;
  std::unordered_map<int64_t, int64_t> row_of_;  // by sample id
  at::Tensor logits_;                            // undefined until they are drawn
  std::vector<Taken> taken_;
};

}  // namespace settrain
