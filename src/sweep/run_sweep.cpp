#include "src/sweep/run_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <deque>
#include <thread>

#include "src/core/atomic_file.h"
#include "src/core/error.h"
#include "src/core/human.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/sweep/job_pool.h"
#include "src/sweep/status_board.h"

namespace settrain {
namespace {

using std::chrono::milliseconds;

// What a failed run said at its end: its error, without the lines of progress before it.
std::string error_of(const EndedJob& job) {
  if (!job.problem.empty()) return job.problem;
  const std::string& printed = job.end.printed;
  const size_t error = printed.rfind("error: ");
  const std::string text = error == std::string::npos ? printed : printed.substr(error + 7);
  if (job.end.code > 128) return fmt::format("ended by signal {}; {}", job.end.code - 128, text);
  return text.empty() ? fmt::format("ended with exit code {}", job.end.code) : text;
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

class Runner {
 public:
  Runner(const Sweep& sweep, const SweepOptions& options) : sweep_(sweep), options_(options) {}

  int64_t run() {
    JobPool pool(items_to_run(), options_.jobs, [this](int64_t item, int64_t place) { return command(item, place); });
    epochs_at_start_ = epochs_done();
    while (!pool.is_done()) {
      if (interrupted() != 0) pool.stop();
      for (const EndedJob& job : pool.take_ended()) note(job, pool);
      draw(pool);
      std::this_thread::sleep_for(milliseconds(100));
    }
    board_.erase();
    write_tables(sweep_);
    throw_if_interrupted();
    return failures();
  }

 private:
  const SweepPoint& point(int64_t item) const { return sweep_.points[static_cast<size_t>(item)]; }

  int64_t failures() const {
    return std::count_if(sweep_.points.begin(), sweep_.points.end(), [this](const SweepPoint& point) {
      return sweep_.folder.status_of(point) == PointStatus::kFailed;
    });
  }

  // Those that were begun come first.
  std::deque<int64_t> items_to_run() const {
    std::deque<int64_t> started, pending;
    for (int64_t i = 0; i < std::ssize(sweep_.points); ++i) {
      if (sweep_.folder.status_of(point(i)) == PointStatus::kFailed && options_.retry_failed) {
        sweep_.folder.forget_failure(point(i));
      }
      const PointStatus status = sweep_.folder.status_of(point(i));
      if (status == PointStatus::kStarted) started.push_back(i);
      if (status == PointStatus::kPending) pending.push_back(i);
    }
    started.insert(started.end(), pending.begin(), pending.end());
    return started;
  }

  std::vector<std::string> command(int64_t item, int64_t place) const {
    const SweepPoint& of = point(item);
    const std::string run = sweep_.folder.run_of(of).string();
    std::vector<std::string> words;
    if (options_.device == "cuda") words = {"env", fmt::format("CUDA_VISIBLE_DEVICES={}", place)};
    words.insert(words.end(), {options_.program, "train", "--device", options_.device});
    if (sweep_.folder.status_of(of) == PointStatus::kStarted) {
      words.insert(words.end(), {"--resume", run});
      return words;
    }
    words.insert(words.end(), {"--config", sweep_.grid.base.string(), "--set", "run.dir=" + run});
    for (const std::string& setting : of.overrides) words.insert(words.end(), {"--set", setting});
    return words;
  }

  void note(const EndedJob& job, JobPool& pool) {
    const SweepPoint& of = point(job.item);
    const bool is_right = job.problem.empty() && job.end.code == 0;
    // A signal for all ends the runs too, and they are no failures.
    if (!is_right && interrupted() != 0) return;
    board_.erase();
    if (is_right) {
      const PointResult result = sweep_.folder.result_of(of, sweep_.grid.select);
      log::info(fmt::format("[sweep] {}: {} {:.4f}, {}", of.name, sweep_.grid.select, result.metric(sweep_.grid.select),
                            format_duration(job.seconds)));
    } else {
      const std::string error = error_of(job);
      sweep_.folder.record_failure(of, error);
      log::error(fmt::format("[sweep] {} failed: {}", of.name, first_line(error)));
      if (options_.fail_fast) pool.stop();
    }
    write_tables(sweep_);
  }

  int64_t epochs_done() const {
    int64_t epochs = 0;
    for (const SweepPoint& of : sweep_.points) epochs += std::min(of.epochs, sweep_.folder.epochs_of(of));
    return epochs;
  }

  void draw(JobPool& pool) {
    if (!board_.is_due()) return;
    std::vector<std::string> lines;
    for (const JobPool::Running& job : pool.running()) {
      if (job.item < 0) continue;
      const SweepPoint& of = point(job.item);
      lines.push_back(fmt::format("{}  epoch {}/{}  {}", of.name, std::min(of.epochs, sweep_.folder.epochs_of(of)),
                                  of.epochs, format_duration(job.seconds)));
    }
    int64_t finished = 0, epochs = 0;
    for (const SweepPoint& of : sweep_.points) {
      finished += sweep_.folder.status_of(of) == PointStatus::kFinished;
      epochs += of.epochs;
    }
    const int64_t done = epochs_done(), here = done - epochs_at_start_;
    const double left =
        here > 0 ? board_.seconds() / static_cast<double>(here) * static_cast<double>(epochs - done) : -1;
    lines.push_back(fmt::format("[sweep] {}/{} runs, {}/{} epochs  ETA {}", finished, sweep_.points.size(), done,
                                epochs, format_duration(left)));
    board_.draw(lines);
  }

  const Sweep& sweep_;
  const SweepOptions& options_;
  StatusBoard board_;
  int64_t epochs_at_start_ = 0;
};

}  // namespace

std::vector<SweepRow> rows_of(const Sweep& sweep) {
  std::vector<SweepRow> rows;
  for (const SweepPoint& point : sweep.points) {
    SweepRow row{.point = &point, .status = sweep.folder.status_of(point)};
    if (row.status == PointStatus::kFinished) row.result = sweep.folder.result_of(point, sweep.grid.select);
    if (row.status == PointStatus::kFailed) row.failure = first_line(sweep.folder.failure_of(point));
    rows.push_back(std::move(row));
  }
  return rows;
}

void write_tables(const Sweep& sweep) {
  const std::vector<SweepRow> rows = rows_of(sweep);
  write_file_atomically(sweep.folder.path() / "sweep.csv", sweep_csv(rows));
  write_file_atomically(sweep.folder.path() / "sweep.md", sweep_markdown(sweep.grid, sweep.title, rows));
}

int64_t run_sweep(const Sweep& sweep, const SweepOptions& options) {
  write_tables(sweep);
  return Runner(sweep, options).run();
}

}  // namespace settrain
