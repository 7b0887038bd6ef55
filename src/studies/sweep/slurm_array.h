// The runs of a sweep for Slurm to train.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/studies/sweep/run_sweep.h"

namespace settrain {

/// Writes the batch script that trains `runs`, places in `sweep.points`, as an array, with these options of sbatch.
/// `device`: of --device.
void write_slurm_array(const Sweep& sweep, const std::vector<int64_t>& runs, const std::vector<std::string>& options,
                       const std::string& device);

}  // namespace settrain
