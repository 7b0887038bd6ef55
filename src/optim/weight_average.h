// A model's weights, averaged over the course of training.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>
#include <utility>
#include <vector>

namespace settrain {

/// The exponential moving average of every floating-point tensor, batch statistics included; others are copied. After
/// step t, counted from 1: average += (1 - d) (weights - average), where d is the decay or, with warm-up, the smaller
/// of it and (1 + t) / (10 + t), so that the initial weights are soon forgotten.
class WeightAverage {
 public:
  using Named = std::vector<std::pair<std::string, at::Tensor>>;

  /// `weights`: the tensors to follow, which the average shares no memory with. `decay` lies in (0, 1).
  WeightAverage(Named weights, double decay, bool warmup);

  /// Called after each optimizer step; `step` counts from 0.
  void update(int64_t step);

  /// The averages, by the weights' names.
  const Named& tensors() const { return average_; }

  /// While one lives, the weights hold the average.
  class InPlace {
   public:
    explicit InPlace(WeightAverage& average) : average_(average) { average_.exchange(); }
    ~InPlace() { average_.exchange(); }
    InPlace(const InPlace&) = delete;
    InPlace& operator=(const InPlace&) = delete;

   private:
    WeightAverage& average_;
  };

 private:
  void exchange();

  Named weights_, average_;
  double decay_;
  bool warmup_;
};

}  // namespace settrain
