// What the steps of an epoch are taken on.
#pragma once

#include <cstdint>
#include <vector>

#include "src/loader/loader.h"
#include "src/train/experiment.h"

namespace settrain {

/// The batches of one step.
struct StepBatches {
  std::vector<Batch> own;  // this process'
  int64_t count = 0;       // of all processes: the step's micro-batches; 0: the epoch has ended
};

/// The training batches of an experiment, as many a step as train.accumulate says for each of its processes.
class StepLoader {
 public:
  explicit StepLoader(const Experiment& run);

  /// Begins the epoch at its batch `first_batch`, of all processes', where a step begins.
  void start_epoch(int64_t epoch, int64_t first_batch = 0);

  /// The next step's; an epoch's last one may have fewer. An epoch's last batch is empty where it is smaller than the
  /// others and its images could not be read; any other empty batch is a DataError.
  StepBatches next();

  /// Batches of a whole step, of all processes.
  int64_t batches_per_step() const { return batches_per_step_; }
  int64_t batches_per_epoch() const { return loader_.batches_per_epoch(); }
  int64_t steps_per_epoch() const;
  /// Samples in an epoch.
  int64_t samples_per_epoch() const;
  const Loader& loader() const { return loader_; }

 private:
  Loader loader_;
  int64_t batches_per_step_;
  int64_t position_ = 0;  // batches of the epoch under way, of all processes, that were given
};

}  // namespace settrain
