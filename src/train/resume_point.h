// Where a run stands, and whether it may go on from a checkpoint, so that it ends as if it had never stopped. Nothing
// is restored here: Training::restore() does that.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "src/checkpoint/checkpoint.h"
#include "src/config/differences.h"
#include "src/run_folder/run_folder.h"
#include "src/train/identity.h"
#include "src/train/selection.h"
#include "src/train/step_result.h"

namespace settrain {

/// Where a training run stands, beside its weights.
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

/// Where a run goes on.
struct ResumePoint {
  std::optional<Checkpoint> checkpoint;  // none: the run was recorded and had not begun
  TrainingState state;
  bool is_finished = false;                 // trained for as many epochs as are asked for, and evaluated
  std::vector<config::Difference> changes;  // of the config that is asked for against the run's own
};

/// Throws RunError where `file` is missing or damaged, or is not the checkpoint of that best epoch.
void check_is_best(const std::filesystem::path& file, const BestEpoch& expected);

/// The place from which the run in `folder`, recorded with the config `recorded`, can go on with `wanted`. Changes
/// nothing.
///
/// Throws ConfigError that lists every key with both values where the configs differ, but for those that change no
/// number (Key::free), train.epochs, train.accumulate where the processes' number makes up for it, and
/// `terms.allowed_keys`; where one of these is no key; and where fewer epochs are asked for than the run has begun.
/// Throws RunError where the last checkpoint is damaged, or missing though the run had begun, where what training steps
/// measure, or the order of images, would change within an epoch, where metrics.jsonl no longer begins as the
/// checkpoint says, where provenance.json is damaged, and where a best checkpoint is lost, unless
/// `terms.allow_inexact`: then it is forgotten.
ResumePoint find_resume_point(const RunFolder& folder, const config::Config& recorded, const config::Config& wanted,
                              const ResumeTerms& terms);

}  // namespace settrain
