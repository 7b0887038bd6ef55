// The progress of long work: a bar on a terminal, a line now and then elsewhere.
#pragma once

#include <cstdint>
#include <functional>
#include <mutex>
#include <ostream>
#include <string>
#include <string_view>

namespace settrain {

/// One moment of the work.
struct Progress {
  std::string stage;    // "[train] epoch 3/30"
  int64_t done = 0;     // images of this stage
  int64_t total = 0;    // images of this stage in all
  int64_t after = 0;    // images of the stages that follow, for the time of arrival
  std::string figures;  // "loss 1.234  val/top5 0.873"; may be empty
  bool bytes = false;   // the numbers above count bytes, not images
};

/// The outputs of a progress bar, and its clock.
struct ProgressOutput {
  std::ostream* terminal = nullptr;            // where a bar is drawn; null: lines instead
  std::function<int()> columns;                // width of `terminal`
  std::function<void(std::string_view)> line;  // takes a line where there is no terminal
  std::function<double()> seconds;             // a clock that never goes back
};

/// stderr if it is a terminal, else log lines.
ProgressOutput standard_progress_output();

/// Shows nothing.
ProgressOutput no_progress_output();

/// Draws "[train] epoch 3/30 [=====>    ]  42%  loss 1.234  5,120 images/s  ETA 12m 05s" at most ten times a second,
/// fitted to the terminal's width; log lines go above it. Where there is no terminal, the same without the bar at most
/// every ten seconds. At most one bar exists at a time.
class ProgressBar {
 public:
  explicit ProgressBar(ProgressOutput output = standard_progress_output());
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  ~ProgressBar();

  void update(const Progress& progress);

  /// Takes the bar off the screen until the next update. The time until then does not count for images/s.
  void hide();

 private:
  void measure_speed(const Progress& progress, double now);
  std::string status(const Progress& progress) const;
  std::string with_bar(const Progress& progress, int columns) const;
  void draw();
  void erase();
  static void before_log_line();
  static void after_log_line();

  ProgressOutput output_;
  std::mutex mutex_;   // log lines come from any thread
  std::string drawn_;  // on the screen now; empty: nothing
  Progress last_;
  bool running_ = false;  // `last_` and `last_seconds_` are the start of an interval that counts
  double last_seconds_ = 0;
  double next_output_ = 0;     // seconds
  double recent_images_ = 0;   // in the recent past, older ones weighing less
  double recent_seconds_ = 0;  // weighed likewise
};

}  // namespace settrain
