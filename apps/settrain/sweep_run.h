// Grids of runs: options and steps that `sweep`, `table` and `figure` share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "apps/settrain/command_line.h"
#include "src/studies/sweep/run_sweep.h"

namespace settrain {

struct SweepArguments {
  std::string folder;  // --dir
  int64_t jobs = 1, threads = 0;
  bool dry_run = false, retry_failed = false, fail_fast = false;
  std::optional<std::string> slurm;  // options for sbatch
};

/// --dir (described by `folder_help`), --jobs, --threads, --dry-run, --retry-failed, --fail-fast, --slurm and --device.
void add_sweep_options(CLI::App& command, CommandLine& line, SweepArguments& arguments, const std::string& folder_help);

/// Checks every point; makes the folder, or for a dry run only reads it; finds the runs in it, and logs their states.
/// `folder` is the sweep's folder where there is no --dir.
Sweep open_sweep(const CommandLine& line, const SweepArguments& arguments, Grid grid, const std::string& title,
                 const std::string& folder);

/// Throws ConfigError where the metric that chooses has no value on the data of a run to come, before one is trained.
void check_selection(const CommandLine& line, const Sweep& sweep);

/// The dry run: prints the runs, and their cost as measured on the first pending run.
void print_plan(const CommandLine& line, const Sweep& sweep, const SweepArguments& arguments);

/// With --slurm: writes the batch script of the pending runs, and says how to submit it.
void print_slurm_array(const CommandLine& line, const Sweep& sweep, const SweepArguments& arguments);

/// Trains until all runs are finished or failed; where the sweep has a batch script, only collects finished runs.
/// Returns the number of unfinished runs. Throws Interrupted where a signal asked to stop.
int64_t carry_out(const CommandLine& line, const Sweep& sweep, const SweepArguments& arguments);

}  // namespace settrain
