// An optimizer step under way.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace settrain {

/// What a step did, summed over its samples.
struct StepResult {
  double loss_sum = 0;
  int64_t correct = 0;  // samples whose label, of mixed ones that with the larger share, has the largest score
  int64_t count = 0;
  std::vector<double> measured{};  // in the order of StepMetrics::names()

  StepResult& operator+=(const StepResult& other);
};

/// A step whose operations the device has been given. Its numbers are on their way to the CPU, which meanwhile may
/// prepare the next step.
class LaunchedStep {
 public:
  /// Throws, for the part of that index, whose loss is not finite.
  using Explain = std::function<void(size_t part)>;

  /// A step without samples.
  LaunchedStep() = default;

  /// `sums`: [parts, 2 + measured] float64 on the step's device: of every part the sum of the losses, the correct
  /// samples and what is measured besides; they are read when the operations that are now under way are done. `count`:
  /// samples.
  LaunchedStep(const at::Tensor& sums, int64_t count, Explain explain);

  /// Samples.
  int64_t count() const { return count_; }

  /// What it did. Waits for the device. Where a loss was not finite, Explain throws.
  StepResult result() const;

 private:
  int64_t count_ = 0;
  at::Tensor sums_;  // on the CPU
  std::optional<c10::Event> copied_;
  Explain explain_;
};

}  // namespace settrain
