// Whether a run may go on from a checkpoint, so that it ends as if it had never stopped.
#pragma once

#include <string>
#include <vector>

#include "src/engine/experiment.h"
#include "src/run/checkpoint.h"

namespace settrain {

/// What the user lets differ.
struct ResumeTerms {
  std::vector<std::string> allowed_keys;  // config keys
  bool allow_inexact = false;             // program, instruction set, threads, device
};

/// Adds what a run's numbers follow from: the metadata "config" (the resolved YAML), "data.digest", "data.labels" (of
/// the training labels, noise included), "machine.*" (what the last bits depend on), and the tensor "state.rng".
void add_identity(const Experiment& run, Checkpoint& checkpoint);

/// Throws ConfigError that lists every key with both values where `config` differs from the checkpoint's, but for those
/// that change no number (data.workers, ...), train.epochs, and `terms.allowed_keys`; and where one of the allowed keys
/// is no key at all.
void check_same_config(const config::Config& config, const Checkpoint& checkpoint, const ResumeTerms& terms);

/// Throws RunError that lists what differs: data, labels, random number version, and, unless they may, the machine's.
void check_same_identity(const Experiment& run, const Checkpoint& checkpoint, const ResumeTerms& terms);

}  // namespace settrain
