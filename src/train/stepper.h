// The batches and the optimizer steps of an experiment.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "src/loader/loader.h"
#include "src/optim/optimizer.h"
#include "src/optim/schedule.h"
#include "src/optim/weight_average.h"
#include "src/train/experiment.h"
#include "src/train/train_step.h"

namespace settrain {

/// The batches of one step.
struct StepBatches {
  std::vector<Batch> own;  // this process'
  int64_t count = 0;       // of all processes: the step's micro-batches; 0: the epoch has ended
};

/// The training batches of an experiment, as many a step as train.accumulate says for each of its processes.
class StepLoader {
 public:
  /// Throws as check_batches_of_one().
  explicit StepLoader(const Experiment& run);

  /// Begins the epoch at its batch `first_batch`, of all processes', where a step begins.
  void start_epoch(int64_t epoch, int64_t first_batch = 0);

  /// The next step's; an epoch's last one may have fewer. A batch is empty where none of its images could be read, or a
  /// single one on which the model cannot be trained. Throws DataError where a hundred images in a row could not be
  /// read.
  StepBatches next();

  /// Batches of a whole step, of all processes.
  int64_t batches_per_step() const { return batches_per_step_; }
  int64_t batches_per_epoch() const { return loader_.batches_per_epoch(); }
  int64_t steps_per_epoch() const;
  /// Samples in an epoch.
  int64_t samples_per_epoch() const;
  const Loader& loader() const { return loader_; }

 private:
  void check_readable(const Batch& batch);

  Loader loader_;
  int64_t batches_per_step_;
  bool takes_one_image_;
  int64_t position_ = 0;         // batches of the epoch under way, of all processes, that were given
  int64_t unread_in_a_row_ = 0;  // images of this process' last batches, as long as none of them could be read
};

/// The optimizer of an experiment's model, at the schedule's learning rates.
class Stepper {
 public:
  /// `steps_per_epoch`: optimizer steps, for the schedule.
  Stepper(Experiment& run, int64_t steps_per_epoch);

  const RunLength& length() const { return length_; }

  /// The metrics of its steps besides loss and top-1.
  const StepMetrics& metrics() const { return train_step_.metrics(); }

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
  double base_lr_;  // optimizer.lr, which the schedule's factor multiplies
  RunLength length_;
  std::unique_ptr<Schedule> schedule_;
  std::unique_ptr<Optimizer> optimizer_;
  TrainStep train_step_;
  std::optional<WeightAverage> average_;
};

}  // namespace settrain
