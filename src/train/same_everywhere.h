// Whether several processes are about to train the same thing.
#pragma once

#include "src/train/experiment.h"

namespace settrain {

/// Throws RunError, in every process alike, that says which process has what otherwise than the first: config (but for
/// keys that change no number), data, threads, instruction set, device, program. Collective.
void check_same_everywhere(const Experiment& run);

}  // namespace settrain
