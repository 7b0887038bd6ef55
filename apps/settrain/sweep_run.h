// What the subcommands that carry out grids of runs have in common.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/settrain/command_line.h"
#include "src/studies/sweep/run_sweep.h"

namespace settrain {

struct SweepArguments {
  std::string folder;  // of --dir
  int64_t jobs = 1, threads = 0;
  bool dry_run = false, retry_failed = false, fail_fast = false;
  std::optional<std::string> slurm;  // options of sbatch
};

/// --dir (described by `folder_help`), --jobs, --threads, --dry-run, --retry-failed, --fail-fast, --slurm and --device.
void add_sweep_options(CLI::App& command, CommandLine& line, SweepArguments& arguments, const std::string& folder_help);

/// Checks every point, then makes the folder, or for a dry run looks at it, finds the runs that it has, and logs how
/// they stand. `folder` is where the sweep is unless --dir says otherwise.
Sweep open_sweep(const CommandLine& line, const SweepArguments& arguments, Grid grid, const std::string& title,
                 const std::string& folder);

/// The dry run: prints the runs and, measured on the first that is to come, what they will take.
void print_plan(const CommandLine& line, const Sweep& sweep, const SweepArguments& arguments);

/// With --slurm: writes the batch script of the runs that are to come, and says how to submit it.
void print_slurm_array(const CommandLine& line, const Sweep& sweep, const SweepArguments& arguments);

/// Carries the sweep out until all runs are done or failed; where a batch script is to train them, only collects them.
/// Returns how many are not finished. Throws Interrupted where a signal asked to stop.
int64_t carry_out(const CommandLine& line, const Sweep& sweep, const SweepArguments& arguments);

}  // namespace settrain
