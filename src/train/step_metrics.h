// What a run measures in its training steps besides loss and top-1: the keys train.top_k and train.gradient_nonzeros.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <vector>

#include "models/model_output.h"

namespace settrain {

struct TrainOptions;

class StepMetrics {
 public:
  explicit StepMetrics(const TrainOptions& options);

  /// What is measured, in the order of sums(): "top5", "gradient_nonzeros". K = 1 is not among them, which every step
  /// measures.
  const std::vector<std::string>& names() const { return names_; }

  /// Before the backward pass of a batch: keeps the gradient of the scores where it will be looked at.
  void watch(const ModelOutput& output) const;

  /// After the backward pass: [names] float64 on the scores' device, sums over the batch's samples. Of every sample:
  /// whether its label is among the K largest scores (ties go to the smaller class index), and for how many classes the
  /// derivative of the step's loss with respect to the score is not exactly 0 in the scores' precision (Garcin et al.,
  /// ICML 2022, Figure 2); none where the loss has no gradient. Of two heads, the one that answers is looked at.
  /// `labels` [batch] int64 on that device. Needs names. Does not wait for the device.
  at::Tensor sums(const ModelOutput& output, const at::Tensor& labels) const;

 private:
  std::vector<int64_t> top_k_;
  bool gradient_nonzeros_;
  std::vector<std::string> names_;
};

}  // namespace settrain
