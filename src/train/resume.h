// Whether a run may go on from a checkpoint, so that it ends as if it had never stopped.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/config/differences.h"
#include "src/run_folder/run_folder.h"
#include "src/train/checkpoint.h"
#include "src/train/experiment.h"
#include "src/train/training_state.h"

namespace settrain {

/// What the user lets differ.
struct ResumeTerms {
  std::vector<std::string> allowed_keys{};  // config keys
  bool allow_inexact = false;               // program, instruction set, threads, device
  int64_t processes = 1;                    // that go on with the run
};

/// Where a run goes on.
struct ResumePoint {
  std::optional<Checkpoint> checkpoint;  // none: the run was recorded and had not begun
  TrainingState state;
  bool is_finished = false;                 // trained for as many epochs as are asked for, and evaluated
  std::vector<config::Difference> changes;  // of the config that is asked for against the run's own
};

/// Adds what a run's numbers follow from: the metadata "config" (the resolved YAML), "processes" (their number), "card"
/// (run_card.h), "data.digest", "data.labels" (of the training labels, noise included), "data.thresholds" (of the
/// folder that sets average-K's thresholds), "model.pretrained.sha256" (of the weights it began with), "machine.*"
/// (what the last bits depend on), and the tensor "state.rng".
void add_identity(const Experiment& run, Checkpoint& checkpoint);

/// Takes over which weights the run once began with, for the record: nothing else needs them any more.
void restore_first_weights(const Checkpoint& checkpoint, Experiment& run);

/// The place from which the run in `folder`, recorded with the config `recorded`, can go on with `wanted`. Changes
/// nothing.
///
/// Throws ConfigError that lists every key with both values where the configs differ, but for those that change no
/// number (Key::free), train.epochs, train.accumulate where the processes' number makes up for it, and
/// `terms.allowed_keys`; where one of these is no key; and where fewer epochs are asked for than the run has begun.
/// Throws RunError where the last checkpoint is damaged, or missing though the run had begun, where what training steps
/// measure would change within an epoch, where metrics.jsonl no longer begins as the checkpoint says, where
/// provenance.json is damaged, and where a best checkpoint is lost, unless `terms.allow_inexact`: then it is forgotten.
ResumePoint find_resume_point(const RunFolder& folder, const config::Config& recorded, const config::Config& wanted,
                              const ResumeTerms& terms);

/// Throws RunError that says what differs where the experiment's model, or the normalisation of its input, is not the
/// checkpoint's: by their configs, since weights of the same shapes may be fed otherwise.
void check_same_model(const Experiment& run, const Checkpoint& checkpoint);

/// Throws RunError that says what differs where the experiment's data or labels are not the checkpoint's.
void check_same_data(const Experiment& run, const Checkpoint& checkpoint);

/// check_same_data(), and the same for the threshold images, the version of the random numbers and, unless they may
/// differ, for the machine's part.
void check_same_identity(const Experiment& run, const Checkpoint& checkpoint, const ResumeTerms& terms);

}  // namespace settrain
