// Runs of a sweep as an array of Slurm's: the batch script whose every element is a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace settrain {

/// What the elements have in common.
struct SlurmArray {
  std::string program;               // this one's path
  std::filesystem::path folder;      // where the elements run: this process' own
  std::filesystem::path logs;        // ARRAY_ELEMENT.log of each
  std::vector<std::string> options;  // of split_slurm_options()
};

/// One element.
struct SlurmElement {
  std::string name;                    // for those who read the script
  std::vector<std::string> arguments;  // of the program
};

/// The options of sbatch that `text` has, each with its value: "-p gpu", "--time=2:00:00". Throws ConfigError where a
/// value comes first, or an option is the script's own affair.
std::vector<std::string> split_slurm_options(const std::string& text);

/// The N of --cpus-per-task; without it 1, as Slurm takes it.
int64_t cpus_per_task(const std::vector<std::string>& options);

/// Of elements 1, 2, ... Each becomes its run's process, which Slurm signals two minutes before the time limit, unless
/// `options` have another --signal; it then writes a checkpoint and ends. With several tasks, srun starts the run's
/// processes. Throws ConfigError where Slurm cannot take the folder of the logs.
std::string slurm_script(const SlurmArray& array, const std::vector<SlurmElement>& elements);

}  // namespace settrain
