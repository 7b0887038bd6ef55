// Whether several processes are about to train the same thing.
#pragma once

#include "src/train/experiment.h"

namespace settrain {

/// Throws AgreedError that says which process has what otherwise than the first: config (but for
/// places of files and the like), data, threads, instruction set, device, program. Collective.
void check_same_everywhere(const Experiment& run);

}  // namespace settrain
