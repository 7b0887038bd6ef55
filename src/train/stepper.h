// From batches to optimizer steps.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "src/optim/optimizer.h"
#include "src/optim/schedule.h"
#include "src/optim/weight_average.h"
#include "src/train/experiment.h"
#include "src/train/step_loader.h"
#include "src/train/train_step.h"

namespace settrain {

/// The optimizer of an experiment's model, at the schedule's learning rates.
class Stepper {
 public:
  /// `steps_per_epoch`: optimizer steps, for the schedule.
  Stepper(Experiment& run, int64_t steps_per_epoch);

  const RunLength& length() const { return length_; }

  /// What is measured in its steps besides loss and top-1.
  const StepMetrics& metrics() const { return metrics_; }

  /// Learning rate of the step of that number, from 0.
  double lr(int64_t step) const;

  /// One step over `batches`, see TrainStep. Where `phases` is given, its times are added there.
  LaunchedStep take(int64_t step, const StepBatches& batches, StepPhases* phases = nullptr);

  /// Gives back memory that only steps need.
  void end_epoch() { train_step_.end_epoch(); }

  /// The optimizer's tensors, see there.
  Optimizer::Named optimizer_state() const { return optimizer_->state(); }

  /// The average that train.ema_decay asks for, or null.
  WeightAverage* average() { return average_ ? &*average_ : nullptr; }

 private:
  Experiment& run_;
  RunLength length_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Optimizer> optimizer_;
  StepMetrics metrics_;
  MixOptions mix_;
  TrainStep train_step_;
  std::optional<WeightAverage> average_;
};

}  // namespace settrain
