// A whole training run: epochs, evaluation, selection, checkpoints, logs.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "src/core/progress_bar.h"
#include "src/formats/tensorboard.h"
#include "src/run_folder/metrics_log.h"
#include "src/run_folder/run_folder.h"
#include "src/train/experiment.h"
#include "src/train/resume_point.h"
#include "src/train/selection.h"
#include "src/train/stepper.h"

namespace settrain {

/// Trains the experiment's model in a run folder.
class Training {
 public:
  /// `folder`: of the first process; null in the others, which write nothing.
  Training(Experiment& run, RunFolder* folder);

  /// Goes back to where `checkpoint`, of the first process and null in the others, was made: weights, the optimizer's
  /// tensors, the loss' own tensors, selection, the loader's position; the logs are cut back to it.
  /// find_resume_point() and check_same_identity() come before. Throws RunError where the checkpoint does not fit.
  void restore(const Checkpoint* checkpoint);

  const TrainingState& state() const { return state_; }

  /// Runs the epochs that are left. A checkpoint is written at the start, as often as train.checkpoint_every says, and
  /// after each epoch, when the metrics have gone to the logs; and one for each metric of `select` that
  /// became better. Throws Interrupted after the step in hand, with the last checkpoint written, where a signal asked
  /// to stop. Throws NumericalError, RunError, DataError.
  void train();

  ProgressBar& progress_bar() { return bar_; }

 private:
  using Clock = std::chrono::steady_clock;

  // The files that the first process writes.
  struct Files {
    explicit Files(RunFolder& run_folder)
        : folder(run_folder),
          metrics(folder.metrics_jsonl(), folder.metrics_csv()),
          tensorboard(folder.tensorboard()) {}

    RunFolder& folder;
    MetricsLog metrics;
    TensorboardWriter tensorboard;
  };

  void use_cached_features();
  void train_epoch();
  void take_step(const StepBatches& batches);
  void settle_step();
  [[noreturn]] void throw_untrained() const;
  MetricsRow training_metrics() const;
  std::vector<MetricValue> evaluate();
  std::string evaluation_summary(const std::vector<MetricValue>& values, const std::vector<size_t>& better) const;
  void save_last();
  void save_best();
  void link_missing_best(const TrainingState& state);
  void restart_selection(const TrainingState& state);
  bool checkpoint_is_due() const;
  void answer_requests();
  void show_progress();
  void warn_if_stalled(double top1);
  void warn_of_lost_classes();
  void warn_if_undefined(int64_t epoch) const;
  void read_checkpoint(const Checkpoint& checkpoint);
  void write_checkpoint();
  void share_state();

  Experiment& run_;
  std::optional<StepLoader> loader_;
  Stepper stepper_;
  Selection selection_;
  std::optional<Files> files_;
  ProgressBar bar_;
  TrainingState state_;
  std::optional<LaunchedStep> under_way_;  // the last step, while its numbers are not in `state_`
  Clock::time_point last_save_;
  bool has_warned_of_stall_ = false, has_warned_of_lost_classes_ = false;
  int64_t skipped_before_ = 0;  // images, at the last look for lost classes
};

}  // namespace settrain
