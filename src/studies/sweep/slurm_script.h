// Runs of a sweep as a Slurm array: the batch script whose elements are the runs.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "src/studies/sweep/run_sweep.h"

namespace settrain {

/// The settings that all elements share.
struct SlurmArray {
  std::string program;               // the path of this program
  std::filesystem::path folder;      // where the elements run: the folder in which this process runs
  std::filesystem::path logs;        // has ARRAY_ELEMENT.log of each
  std::vector<std::string> options;  // from split_slurm_options()
};

/// One element.
struct SlurmElement {
  std::string name;                    // a comment in the script
  std::vector<std::string> arguments;  // of the program
};

/// The options of sbatch that `text` has, each with its value: "-p gpu", "--time=2:00:00". Throws ConfigError where a
/// value comes first, or an option is the script's own affair.
std::vector<std::string> split_slurm_options(const std::string& text);

/// The N of --cpus-per-task; without it 1, as Slurm takes it.
int64_t cpus_per_task(const std::vector<std::string>& options);

/// The text as one word of a shell, in quotes where it needs them.
std::string shell_word(std::string_view text);

/// The script of elements 1, 2, ... Each becomes its run's process or, where `options` have --ntasks, srun, which
/// starts a process for each task. Slurm signals the processes two minutes before the time limit, unless `options` have
/// another
/// --signal; they then write a checkpoint and end. Throws ConfigError where Slurm cannot take the folder of the logs.
std::string slurm_script(const SlurmArray& array, const std::vector<SlurmElement>& elements);

/// Writes the script that trains `runs`, places in `sweep.points`, with these options of sbatch, into the sweep's
/// folder. `device`: as --device names it.
void write_slurm_array(const Sweep& sweep, const std::vector<int64_t>& runs, const std::vector<std::string>& options,
                       const std::string& device);

}  // namespace settrain
