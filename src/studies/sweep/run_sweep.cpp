#include "src/studies/sweep/run_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <deque>
#include <iostream>
#include <numeric>
#include <thread>

#include "src/config/value.h"
#include "src/core/error.h"
#include "src/core/files.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/process.h"
#include "src/core/text.h"
#include "src/run_folder/run_folder.h"
#include "src/studies/sweep/job_pool.h"

namespace settrain {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Lines at the bottom of the terminal at standard error, drawn over and over. Draws nothing where there is no terminal.
class StatusBoard {
 public:
  ~StatusBoard() { erase(); }

  double seconds() const { return seconds_since(start_); }

  // Whether there is a terminal, and the last drawing is half a second old.
  bool is_due() const { return is_terminal_ && Clock::now() - last_ >= kPause; }

  // Draws in the place of what was drawn before, each line cut to the terminal's width.
  void draw(const std::vector<std::string>& lines) {
    erase();
    const auto width = static_cast<size_t>(std::max(20, terminal_columns() - 1));
    for (const std::string& line : lines) std::cerr << first_characters(line, width) << '\n';
    std::cerr.flush();
    drawn_ = lines.size();
    last_ = Clock::now();
  }

  // Takes the lines off, so that something else can be written.
  void erase() {
    for (; drawn_ > 0; --drawn_) std::cerr << "\x1b[A\r\x1b[K";
    std::cerr.flush();
  }

 private:
  static constexpr std::chrono::milliseconds kPause{500};

  bool is_terminal_ = stderr_is_terminal();
  Clock::time_point start_ = Clock::now(), last_ = start_ - kPause;
  size_t drawn_ = 0;  // lines
};

// The error that a failed run ended with, without the lines of progress before it.
std::string error_of(const EndedJob& job) {
  if (!job.problem.empty()) return job.problem;
  const std::string& printed = job.end.printed;
  const size_t error = printed.rfind("error: ");
  const std::string text = error == std::string::npos ? printed : printed.substr(error + 7);
  if (job.end.code > 128)
    return fmt::format("ended by signal {}; {}", job.end.code - 128, text.substr(text.rfind('\n') + 1));
  return text.empty() ? fmt::format("ended with exit code {}", job.end.code) : text;
}

// A run as it stands.
SweepRow row_of(const Sweep& sweep, const SweepPoint& point) {
  SweepRow row{.point = &point, .status = sweep.folder.status_of(point)};
  try {
    if (row.status == PointStatus::kFinished) row.result = read_result(sweep.folder.run_of(point), sweep.grid.select);
    if (row.status == PointStatus::kFailed) row.failure = first_line(sweep.folder.failure_of(point));
  } catch (const Error& problem) {
    row.status = PointStatus::kFailed;
    row.failure = first_line(problem.what());
  }
  return row;
}

void write_tables(const Sweep& sweep, const std::vector<SweepRow>& rows) {
  write_file_atomically(sweep.folder.path() / "sweep.csv", sweep_csv(rows));
  write_file_atomically(sweep.folder.path() / "sweep.md", sweep_markdown(sweep.grid, sweep.title, rows));
}

// Trains the runs. The rows of all runs are kept here; only those of running jobs are read again.
class Runner {
 public:
  Runner(const Sweep& sweep, const SweepOptions& options) : sweep_(sweep), options_(options) {}

  int64_t run() {
    std::deque<int64_t> items;
    for (const int64_t item : runs_to_come(sweep_, options_.retry_failed)) {
      if (!is_in_other_hands(point_at(item))) items.push_back(item);
    }
    rows_ = rows_of(sweep_);
    for (const SweepPoint& point : sweep_.points) epochs_.push_back(epochs_of(point));
    epochs_at_start_ = epochs_done();
    write_tables(sweep_, rows_);
    JobPool pool(items, options_.jobs, sweep_.folder.lock_descriptor(),
                 [this](int64_t item, int64_t place) { return command(item, place); });
    while (!pool.is_done()) {
      if (interrupted() != 0) pool.stop();
      for (const EndedJob& job : pool.take_ended()) note(job, pool);
      draw(pool);
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
    }
    board_.erase();
    const int64_t unfinished = collect_sweep(sweep_);
    throw_if_interrupted();
    return unfinished;
  }

 private:
  const SweepPoint& point_at(int64_t item) const { return sweep_.points[static_cast<size_t>(item)]; }

  int64_t epochs_of(const SweepPoint& point) const {
    if (sweep_.folder.status_of(point) == PointStatus::kFinished) return point.epochs;
    return std::min(point.epochs, sweep_.folder.epochs_of(point));
  }

  int64_t epochs_done() const { return std::accumulate(epochs_.begin(), epochs_.end(), int64_t{0}); }

  // Whether another process trains the run, such as an element of a Slurm array.
  bool is_in_other_hands(const SweepPoint& point) const {
    if (sweep_.folder.status_of(point) != PointStatus::kStarted) return false;
    try {
      RunFolder::open_to_resume(sweep_.folder.run_of(point));
      return false;
    } catch (const RunError& problem) {
      log::warning(fmt::format("[sweep] {} is left alone: {}", point.name, problem.what()));
      return true;
    }
  }

  std::vector<std::string> command(int64_t item, int64_t place) const {
    std::vector<std::string> words;
    if (!options_.gpus.empty()) words = {"env", "CUDA_VISIBLE_DEVICES=" + options_.gpus[static_cast<size_t>(place)]};
    words.push_back(options_.program);
    const auto arguments = training_arguments(sweep_, point_at(item), options_.device);
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }

  void note(const EndedJob& job, JobPool& pool) {
    const SweepPoint& point = point_at(job.item);
    const bool is_right = job.problem.empty() && job.end.code == 0;
    // A signal to the whole group ends the runs too; these are no failures.
    if (!is_right && interrupted() != 0) return;
    if (!is_right) sweep_.folder.record_failure(point, error_of(job));
    SweepRow& row = rows_[static_cast<size_t>(job.item)];
    row = row_of(sweep_, point);
    epochs_[static_cast<size_t>(job.item)] = epochs_of(point);
    board_.erase();
    if (row.result) {
      const double value = row.result->metric(sweep_.grid.select);  // none where `select` names an epoch: last
      const std::string figure = std::isnan(value) ? "" : fmt::format("{} {:.4f}, ", sweep_.grid.select, value);
      log::info(fmt::format("[sweep] {}: {}{}", point.name, figure, format_duration(job.seconds)));
      if (row.result->chose_nothing && !has_warned_) {
        has_warned_ = true;
        log::warning(fmt::format("[sweep] {}: {}", point.name, chose_nothing_text(sweep_.grid.select, *row.result)));
      }
    } else {
      log::error(fmt::format("[sweep] {} failed: {}", point.name, row.failure));
      if (options_.fail_fast) pool.stop();
    }
    write_tables(sweep_, rows_);
  }

  void draw(JobPool& pool) {
    if (!board_.is_due()) return;
    std::vector<std::string> lines;
    for (const JobPool::Place& job : pool.places()) {
      if (job.item < 0) continue;
      const SweepPoint& point = point_at(job.item);
      const int64_t epochs = epochs_[static_cast<size_t>(job.item)] = epochs_of(point);
      lines.push_back(fmt::format("{}  epoch {}/{}  {}", point.name, epochs, point.epochs,
                                  format_duration(seconds_since(job.since))));
    }
    int64_t epochs = 0, remaining = 0;
    for (size_t i = 0; i < rows_.size(); ++i) {
      epochs += rows_[i].point->epochs;
      if (rows_[i].status != PointStatus::kFailed) remaining += rows_[i].point->epochs - epochs_[i];
    }
    const int64_t done = epochs_done(), here = done - epochs_at_start_;
    const double left = here > 0 ? board_.seconds() / static_cast<double>(here) * static_cast<double>(remaining) : -1;
    lines.push_back(fmt::format("[sweep] {}/{} runs, {}/{} epochs  ETA {}", count(rows_, PointStatus::kFinished),
                                rows_.size(), done, epochs, format_duration(left)));
    board_.draw(lines);
  }

  const Sweep& sweep_;
  const SweepOptions& options_;
  StatusBoard board_;
  std::vector<SweepRow> rows_;
  std::vector<int64_t> epochs_;  // that every run has behind it
  int64_t epochs_at_start_ = 0;
  bool has_warned_ = false;
};

}  // namespace

int64_t count(const std::vector<SweepRow>& rows, PointStatus status) {
  return std::count_if(rows.begin(), rows.end(), [status](const SweepRow& row) { return row.status == status; });
}

std::vector<SweepRow> rows_of(const Sweep& sweep) {
  std::vector<SweepRow> rows;
  for (const SweepPoint& point : sweep.points) rows.push_back(row_of(sweep, point));
  return rows;
}

std::vector<int64_t> runs_to_come(const Sweep& sweep, bool retry_failed) {
  std::vector<int64_t> started, pending;
  for (int64_t i = 0; i < std::ssize(sweep.points); ++i) {
    const SweepPoint& point = sweep.points[static_cast<size_t>(i)];
    if (sweep.folder.status_of(point) == PointStatus::kFailed && retry_failed) sweep.folder.forget_failure(point);
    const PointStatus status = sweep.folder.status_of(point);
    if (status == PointStatus::kStarted) started.push_back(i);
    if (status == PointStatus::kPending) pending.push_back(i);
  }
  started.insert(started.end(), pending.begin(), pending.end());
  return started;
}

std::vector<std::string> training_arguments(const Sweep& sweep, const SweepPoint& point, const std::string& device) {
  const std::string run = sweep.folder.run_of(point).string();
  std::vector<std::string> words{"train", "--device", device};
  if (sweep.folder.status_of(point) == PointStatus::kStarted) {
    words.insert(words.end(), {"--resume", run});
    return words;
  }
  words.insert(words.end(), {"--config", sweep.grid.base.string(), "--set", "run.dir=" + config::yaml_text(run)});
  for (const std::string& setting : point.overrides) words.insert(words.end(), {"--set", setting});
  return words;
}

int64_t run_sweep(const Sweep& sweep, const SweepOptions& options) {
  return Runner(sweep, options).run();
}

int64_t collect_sweep(const Sweep& sweep) {
  const std::vector<SweepRow> rows = rows_of(sweep);
  write_tables(sweep, rows);
  return std::ssize(rows) - count(rows, PointStatus::kFinished);
}

}  // namespace settrain
