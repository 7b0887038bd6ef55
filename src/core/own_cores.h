// How much of a machine's processors is for this process.
#pragma once

#include <cstdint>

#include "src/core/environment.h"

namespace settrain {

/// The cores that are this process' own. Of a Slurm task those that it was given (SLURM_CPUS_PER_TASK), or an equal
/// share of those that the tasks of its step have on this machine (SLURM_CPUS_ON_NODE, SLURM_STEP_TASKS_PER_NODE); else
/// those of the machine. Processes that torchrun or settrain started have equal shares of that (LOCAL_WORLD_SIZE). At
/// least one.
int64_t own_cores(const Environment& environment = environment_variable);

}  // namespace settrain
