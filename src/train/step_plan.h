// The micro-batches of an optimizer step, and which process has which.
#pragma once

#include <cstdint>
#include <vector>

#include "losses/loss.h"
#include "src/loader/loader.h"
#include "src/parallel/process_group.h"
#include "src/train/step_inputs.h"

namespace settrain {

/// Of W processes with A batches each, micro-batch a W + r is batch a of process r: a step is the same row of
/// micro-batches for every W with the same product A W. Its last round may lack some.
struct StepPlan {
  struct MicroBatch {
    int64_t number = 0;  // in the step
    int64_t samples = 0;
    int64_t first_position = 0;  // of its first sample within the step
  };

  using Round = std::vector<MicroBatch>;  // at most one of each process

  int64_t count = 0;          // samples of the whole step
  double divisor = 0;         // of the sum of their losses, at least that of one sample
  std::vector<Round> rounds;  // those with samples, in the order of their numbers

  /// Those of all rounds.
  std::vector<MicroBatch> all() const;
};

/// What the processes plan together: each gives the batches that it has. Collective.
StepPlan plan_step(ProcessGroup& group, const Loss& loss, const std::vector<Batch>& batches, const StepNumber& number);

}  // namespace settrain
