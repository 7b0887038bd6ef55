// Where a training run stands, beside its weights.
#pragma once

#include <cstdint>

#include "src/train/checkpoint.h"
#include "src/train/launched_step.h"

namespace settrain {

struct TrainingState {
  int64_t epoch = 0;      // completed
  int64_t batch = 0;      // batches of the epoch under way that were trained on
  int64_t step = 0;       // optimizer steps taken
  StepResult sum;         // over the epoch under way
  double early_loss = 0;  // mean losses of the steps in the first tenth of the run's first epoch, summed
  double late_loss = 0;   // the same of its last tenth
  double seconds = 0;     // spent on the epoch under way; by the clock, so nothing may follow from it
};

/// Adds it as the tensors "state.*": int64 and float64 scalars, and a row of float64 "state.measured" where there are
/// such sums; the seconds, which no two runs share, as metadata "time.epoch_s".
void add_state(const TrainingState& state, Checkpoint& checkpoint);

/// Throws RunError where an entry is missing or of another kind.
TrainingState read_state(const Checkpoint& checkpoint);

}  // namespace settrain
