// A whole training run: epochs, evaluation, selection, checkpoints, logs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "src/core/progress_bar.h"
#include "src/engine/evaluation.h"
#include "src/engine/experiment.h"
#include "src/engine/selection.h"
#include "src/engine/train_step.h"
#include "src/optim/schedule.h"
#include "src/optim/sgd.h"
#include "src/run/metrics_log.h"
#include "src/run/run_folder.h"
#include "src/run/tensorboard.h"

namespace settrain {

/// Trains the experiment's model in a run folder.
class Training {
 public:
  Training(Experiment& run, RunFolder& folder);

  /// Runs all epochs. After each: the validation metrics, a row in the logs, the last checkpoint, and those of the
  /// metrics that became better. Returns 0; or, where a signal asked to stop, its number, after the step in hand, with
  /// the last checkpoint written. Throws NumericalError, RunError, DataError.
  int train();

  ProgressBar& progress_bar() { return bar_; }

  /// The best epochs by the metrics of `select`.
  const Selection& selection() const { return selection_; }

 private:
  /// Sums over an epoch.
  struct EpochTotals {
    StepResult sum;
    double seconds = 0;
  };

  EpochTotals train_epoch(int64_t epoch);
  StepResult train_one_step(std::vector<Batch> batches);
  void show_progress(int64_t epoch, const EpochTotals& totals);
  void warn_if_stalled() const;
  void warn_if_undefined(int64_t epoch) const;
  void end_epoch(int64_t epoch, const EpochTotals& totals);
  std::string validation_summary(const std::vector<MetricValue>& values, const std::vector<size_t>& better) const;
  void save(const std::filesystem::path& file, int64_t epoch);

  Experiment& run_;
  RunFolder& folder_;
  Loader loader_;
  RunLength length_;
  std::unique_ptr<Schedule> schedule_;
  Sgd optimizer_;
  Selection selection_;
  MetricsLog metrics_;
  TensorboardWriter tensorboard_;
  ProgressBar bar_;
  int64_t step_ = 0;                        // optimizer steps taken
  std::vector<double> first_epoch_losses_;  // mean loss of every step of the first epoch
};

}  // namespace settrain
