// Carries a sweep out, one process a run, and writes its tables.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/studies/sweep/grid.h"
#include "src/studies/sweep/grid_runs.h"
#include "src/studies/sweep/sweep_folder.h"

namespace settrain {

struct SweepOptions {
  std::string program;              // the path of this program
  std::string device;               // as --device names it: "cpu" or "cuda"
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

/// One run of the sweep as it stands. Nothing in it depends on the clock, so that a sweep that was stopped and started
/// again gives the tables of one that was not.
struct SweepRow {
  const SweepPoint* point = nullptr;
  PointStatus status = PointStatus::kPending;
  std::optional<PointResult> result{};  // of a finished run
  std::string failure{};                // the first line of a failed run's error
};

/// Every run as it stands. A run whose results cannot be read has failed.
std::vector<SweepRow> rows_of(const Sweep& sweep);

/// How many of the runs stand like that.
int64_t count(const std::vector<SweepRow>& rows, PointStatus status);

/// The runs to come, as places in `sweep.points`: first those that were begun, then the others. With `retry_failed`
/// failed runs are among them, and their failures are forgotten.
std::vector<int64_t> runs_to_come(const Sweep& sweep, bool retry_failed);

/// The program's arguments to begin a run, or to resume it. `device`: as --device names it.
std::vector<std::string> training_arguments(const Sweep& sweep, const SweepPoint& point, const std::string& device);

/// Starts what is pending, resumes what was started, and keeps the tables current. On a terminal a line for each job
/// says what runs. A run that another process trains is left to it. Throws Interrupted where a signal asked to stop,
/// once all jobs have ended. Returns how many runs are not finished.
int64_t run_sweep(const Sweep& sweep, const SweepOptions& options);

/// Starts nothing: writes the tables of what is there. Returns how many runs are not finished.
int64_t collect_sweep(const Sweep& sweep);

/// Every run with its settings, status, chosen checkpoint and all of its metrics, by the names that they have in the
/// run's own files. Fractions stay fractions; what is not there is an empty cell.
std::string sweep_csv(const std::vector<SweepRow>& rows);

/// A report in Markdown: every setting with the mean over its seeds of the metric that the sweep selects by, and 95 %
/// intervals; then, for each value of `per`, the setting whose mean is best, with the metrics to be reported, of that
/// setting alone; then what failed, and what is still to come. Average-K comes with the sizes of its sets.
std::string sweep_markdown(const Grid& grid, const std::string& title, const std::vector<SweepRow>& rows);

}  // namespace settrain
