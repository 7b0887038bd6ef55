// Carries a sweep out: one process a run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/config/schema.h"
#include "src/studies/sweep/grid.h"
#include "src/studies/sweep/sweep_folder.h"
#include "src/studies/sweep/sweep_table.h"

namespace settrain {

struct SweepOptions {
  std::string program;              // this one's path
  std::string device;               // of --device: "cpu" or "cuda"
  std::vector<std::string> gpus{};  // one a place, as CUDA_VISIBLE_DEVICES names them; empty for the CPU
  int64_t jobs = 1;                 // runs at a time
  bool retry_failed = false, fail_fast = false;
};

struct Sweep {
  Grid grid;
  std::string title;
  std::vector<SweepPoint> points;
  SweepFolder folder;
};

/// A run as it stands: one whose results cannot be read has failed.
SweepRow row_of(const Sweep& sweep, const SweepPoint& point);

/// Every run as it stands.
std::vector<SweepRow> rows_of(const Sweep& sweep);

/// The runs to come, by their places in `sweep.points`: those that were begun, then the others. Failed ones are among
/// them with `retry_failed`, and their failures are forgotten.
std::vector<int64_t> runs_to_come(const Sweep& sweep, bool retry_failed);

/// What the program takes to begin a run, or to go on with it. `device`: of --device.
std::vector<std::string> training_arguments(const Sweep& sweep, const SweepPoint& point, const std::string& device);

/// Starts what is pending, resumes what was started, and keeps the tables current. On a terminal a line for each job
/// says what runs. A run that another process trains is left to it. Throws Interrupted where a signal asked to stop,
/// once all jobs have ended. Returns how many runs are not finished.
int64_t run_sweep(const Sweep& sweep, const SweepOptions& options);

/// Starts nothing: writes the tables of what is there. Returns how many runs are not finished.
int64_t collect_sweep(const Sweep& sweep);

}  // namespace settrain
