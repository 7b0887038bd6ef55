// Everything that a run's numbers follow from (config, data, first weights, machine), as a checkpoint records it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/checkpoint/checkpoint.h"
#include "src/config/differences.h"
#include "src/train/experiment.h"

namespace settrain {

/// Differences that the user allows.
struct ResumeTerms {
  std::vector<std::string> allowed_keys{};  // config keys
  bool allow_inexact = false;               // program, instruction set, threads, device
  int64_t processes = 1;                    // that go on with the run
};

/// The metadata "machine.*": everything that the last bits of a run depend on, besides its config and data.
TextMap machine_identity(const Experiment& run);

/// Adds the metadata "config" (the resolved YAML), "fitted" (fitted_keys(), as JSON), "processes" (their number),
/// "card" (see card_of()), "input" (its size and normalisation, for people and for comparing processes), "data.digest"
/// (of all splits), "data.train", "data.val", "data.calibration", "data.test" (of each split alone), "data.labels" (of
/// the training labels, noise included), "data.thresholds" (of the folder that sets average-K's thresholds),
/// "model.pretrained.sha256" (of the weights it began with), "machine.*" (what the last bits depend on), and the tensor
/// "state.rng".
void add_identity(const Experiment& run, Checkpoint& checkpoint);

/// The input that a checkpoint with this metadata was trained with: its card's; empty for one of an early version,
/// which has none. Throws RunError "`place`: ..." where the card is damaged.
RecordedInput recorded_input(const TextMap& metadata, const std::string& place);

/// The number of processes that trained it.
int64_t processes_of(const Checkpoint& checkpoint);

/// The keys whose defaults were fitted to the number of classes; none for a checkpoint of an early version, which does
/// not know. Throws RunError where the entry is damaged.
std::optional<std::vector<std::string>> fitted_keys_of(const Checkpoint& checkpoint);

/// Takes over what only the beginning of the run knew, where the checkpoint has it, for later checkpoints and the
/// provenance: the digest of the weights that it began with, and the keys whose defaults were fitted.
void take_over_beginning(const Checkpoint& checkpoint, Experiment& run);

/// Where `now` differs from an earlier record. A key that the record lacks was added by a later version of the program,
/// which at its default does what it did, or belongs to another variant, whose name differs too.
std::vector<config::Difference> config_changes(const std::string& record, const config::Config& now);

/// Whether the key belongs to the network itself: weights have their shapes, and the best checkpoints were chosen in
/// one precision.
bool is_of_network(const std::string& path);

/// Throws RunError that says what differs where the experiment's model, or the normalisation of its input, is not the
/// checkpoint's: by their configs, since weights of the same shapes may be fed otherwise.
void check_same_model(const Experiment& run, const Checkpoint& checkpoint);

/// For an evaluation, which needs the same classes, and whose images may have been repaired: warns of each split whose
/// images or labels are not the checkpoint's, once, and names the first file that differs. Throws RunError that says
/// what differs where the data set differs by its config or its classes and the training split differs, or may differ
/// since an early checkpoint has one digest for all data. Warns of names and superclasses that are not the
/// checkpoint's.
void check_same_data(Experiment& run, const Checkpoint& checkpoint);

/// For training on: the same, but throws RunError wherever the training images or labels, or the superclasses, are not
/// the checkpoint's, and for another version of the random numbers or, unless it may differ, another machine. For a
/// checkpoint that does not know which splits differ it throws, too, unless the training labels are the same and
/// `terms.allow_inexact`.
void check_same_identity(Experiment& run, const Checkpoint& checkpoint, const ResumeTerms& terms);

/// Throws AgreedError that names the processes which differ from the first, and in what: config (but
/// for places of files and the like), input, data, threads, instruction set, device, program. Collective.
void check_same_everywhere(const Experiment& run);

}  // namespace settrain
