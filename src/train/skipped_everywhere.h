// Images that other processes left out, for the log of the first.
#pragma once

#include "src/train/experiment.h"

namespace settrain {

/// Has the first process log what the others have left out since the last call (data.on_bad_image). Collective.
void log_skipped_everywhere(const Experiment& run);

}  // namespace settrain
