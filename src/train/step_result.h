// The numbers of an optimizer step: its sums, on their way to the CPU, its times, and the message for a loss that is
// not finite.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "losses/loss.h"
#include "src/train/step_inputs.h"

namespace settrain {

class Model;
struct TrainOptions;

/// The metrics of training steps besides loss and top-1: the keys train.top_k and train.gradient_nonzeros.
class StepMetrics {
 public:
  StepMetrics() = default;  // nothing
  explicit StepMetrics(const TrainOptions& options);

  /// The metrics, in the order of sums(): "top5", "gradient_nonzeros". K = 1 is not among them, which every step
  /// measures.
  const std::vector<std::string>& names() const { return names_; }

  /// Before the backward pass of a batch: keeps the gradient of the scores where it will be looked at.
  void watch(const ModelOutput& output) const;

  /// After the backward pass: [names] float64 on the scores' device, sums over the batch's samples. top-K: whether the
  /// label is among the K largest scores (ties go to the smaller class index). gradient_nonzeros: for how many classes
  /// the derivative of the step's loss with respect to the score is not exactly 0 in the scores' precision (Garcin et
  /// al., ICML 2022, Figure 2); none where the loss has no gradient. Of two heads, the one that answers is looked at.
  /// `labels` [batch] int64 on that device. Needs names. Does not wait for the device.
  at::Tensor sums(const ModelOutput& output, const at::Tensor& labels) const;

  /// The columns of fill(): the sum of the losses, the number of samples whose label has the largest score, and those
  /// of sums().
  static constexpr int64_t kLossSum = 0, kCorrect = 1, kFirstMeasured = 2;
  int64_t columns() const { return kFirstMeasured + std::ssize(names_); }
  /// Fills `row` [columns] float64 on the device after the backward pass.
  void fill(const at::Tensor& row, const LossInput& input, const LossValue& value) const;

 private:
  std::vector<int64_t> top_k_{};
  bool gradient_nonzeros_ = false;
  std::vector<std::string> names_{};
};

/// Sets `stop`, [] float32, to 1 where the losses' sum in a row of `sums` is not finite: [parts, columns] float64 on
/// its device, rows of StepMetrics::fill(). Does not wait for the device.
void stop_where_not_finite(const at::Tensor& sums, at::Tensor& stop);

/// The numbers of a step, summed over its samples.
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

  /// `sums`: [parts, columns] float64 on the step's device, rows of StepMetrics::fill(), which are read when the
  /// operations that are now under way are done. `count`: samples.
  LaunchedStep(const at::Tensor& sums, int64_t count, Explain explain);

  /// Samples.
  int64_t count() const { return count_; }

  /// The step's numbers. Waits for the device. Where a loss was not finite, Explain throws.
  StepResult result() const;

 private:
  int64_t count_ = 0;
  at::Tensor sums_;  // on the CPU
  std::optional<c10::Event> copied_;
  Explain explain_;
};

/// Seconds of the parts of a step, or of several steps.
struct StepPhases {
  double forward = 0;  // loss and training accuracy included
  double backward = 0;
  double update = 0;  // of the weights, with clipping and the clearing of gradients
};

/// Adds the time since its last call to a phase, once the device has finished what it was given. Without phases it does
/// nothing, and the device is not waited for.
class PhaseTimer {
 public:
  PhaseTimer(StepPhases* phases, c10::Device device);
  void end(double StepPhases::*phase);

 private:
  StepPhases* phases_;
  c10::Device device_;
  std::chrono::steady_clock::time_point last_;
};

/// The message for a loss that is not finite: step, learning rate, samples, largest |score|, and the first tensor that
/// is not finite, of the parameters in the model's order, then the features, then the scores.
std::string non_finite_message(const Model& model, const LossInput& input, const LossValue& value,
                               const StepNumber& number);

/// Throws NumericalError, naming the first, where a parameter, a batch statistic or a tensor of the loss is not finite
/// after so many steps.
void check_finite(const Model& model, Loss& loss, int64_t step);

}  // namespace settrain
