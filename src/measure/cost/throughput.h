// How fast a run trains, and how much of that time the loader takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "models/registry.h"
#include "src/train/stepper.h"

namespace settrain {

/// The settings "key=value" of a training run on random images, to measure how long steps take: data and the rest for
/// one batch of images of the size and classes that `model` was made for, unless `size` (pixels) and `classes` are not
/// 0.
std::vector<std::string> random_images(const ModelEntry& model, int64_t batch, int64_t size, int64_t classes);

/// The middle one of `values`, of which there is at least one; the mean of the two in the middle of an even number.
double median(std::vector<double> values);

/// The quotients `first` over `second` of the rounds in which both were measured: [rounds of the one with fewer].
std::vector<double> ratios(const std::vector<double>& first, const std::vector<double>& second);

/// Seconds of optimizer steps, and the images in all of them.
struct StepTimes {
  std::vector<double> seconds;
  int64_t images = 0;
  StepPhases phases;  // of steps on a cached batch

  double images_per_second() const;
  /// Mean seconds of a step.
  double mean() const;
  StepTimes& operator+=(const StepTimes& other);
};

/// Whether steps throw Interrupted where a signal was caught. Several processes first agree to stop, so there none
/// does.
enum class OnSignal { kThrow, kGoOn };

/// Takes steps of the experiment's own training and measures them. Changes its model.
class Throughput {
 public:
  explicit Throughput(Experiment& run, OnSignal on_signal = OnSignal::kThrow);

  /// `steps` steps on the loader's batches, into `times`; the first `warm_up` of them are not measured.
  void take_from_loader(int64_t steps, int64_t warm_up, StepTimes& times);

  /// `steps` steps that all take the same batches, already on the device, into `times`.
  void take_cached(int64_t steps, StepTimes& times);

  /// One step on the cached batches, whose time the caller measures.
  void take_cached_step() { take(cached_); }

  const Loader& loader() const { return loader_.loader(); }
  const RunLength& length() const { return stepper_.length(); }
  int64_t steps_taken() const { return step_; }

 private:
  StepBatches next();
  // Returns the images of the step.
  int64_t take(const StepBatches& batches, StepPhases* phases = nullptr);
  void settle();

  Experiment& run_;
  OnSignal on_signal_;
  StepLoader loader_;
  Stepper stepper_;
  StepBatches cached_;
  std::optional<LaunchedStep> under_way_;
  int64_t step_ = 0, epoch_ = 0;
};

}  // namespace settrain
