// Runs of a sweep as an array of Slurm's: the batch script whose every element is a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
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

/// The text as one word of a shell.
std::string shell_word(std::string_view text);

/// Of elements 1, 2, ... Each becomes its run's process or, where `options` have --ntasks, srun, which starts a process
/// for each task. Slurm signals the processes two minutes before the time limit, unless `options` have another
/// --signal; they then write a checkpoint and end. Throws ConfigError where Slurm cannot take the folder of the logs.
std::string slurm_script(const SlurmArray& array, const std::vector<SlurmElement>& elements);

}  // namespace settrain
