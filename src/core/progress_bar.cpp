#include "src/core/progress_bar.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <iostream>
#include <utility>

#include "src/core/log.h"
#include "src/core/process.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr double kSecondsBetweenDrawings = 0.1;
constexpr double kSecondsBetweenLines = 10;
constexpr double kSpeedMemory = 15;  // seconds after which an interval weighs 1/e in the speed
constexpr int kWidestBar = 30, kNarrowestBar = 5;

ProgressBar* shown = nullptr;  // set and cleared while the log's guard is off

}  // namespace

ProgressOutput standard_progress_output() {
  ProgressOutput output;
  if (stderr_is_terminal()) output.terminal = &std::cerr;
  output.columns = terminal_columns;
  output.line = log::info;
  output.seconds = [] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  };
  return output;
}

ProgressOutput no_progress_output() {
  ProgressOutput output = standard_progress_output();
  output.terminal = nullptr;
  output.line = [](std::string_view) {};
  return output;
}

ProgressBar::ProgressBar(ProgressOutput output) : output_(std::move(output)) {
  next_output_ = output_.seconds() + (output_.terminal ? 0 : kSecondsBetweenLines);
  if (!output_.terminal) return;
  shown = this;
  log::set_terminal_guard({before_log_line, after_log_line});
}

ProgressBar::~ProgressBar() {
  if (!output_.terminal) return;
  log::set_terminal_guard({});
  shown = nullptr;
  hide();
}

void ProgressBar::update(const Progress& progress) {
  const double now = output_.seconds();
  std::string line;
  {
    const std::lock_guard lock(mutex_);
    measure_speed(progress, now);
    if (now < next_output_) return;
    next_output_ = now + (output_.terminal ? kSecondsBetweenDrawings : kSecondsBetweenLines);
    if (output_.terminal) {
      drawn_ = with_bar(progress, output_.columns());
      draw();
    } else {
      line = progress.stage + " " + status(progress);
    }
  }
  // Logged without the lock, since the log takes its own lock first and then this one.
  if (!line.empty()) output_.line(line);
}

void ProgressBar::hide() {
  const std::lock_guard lock(mutex_);
  erase();
  drawn_.clear();
  running_ = false;
}

void ProgressBar::measure_speed(const Progress& progress, double now) {
  if (progress.stage != last_.stage || progress.done < last_.done) {
    // Another kind of work: evaluation runs faster than training.
    running_ = false;
    recent_images_ = recent_seconds_ = 0;
  }
  if (running_) {
    const double elapsed = now - last_seconds_;
    const double weight = std::exp(-elapsed / kSpeedMemory);
    recent_images_ = weight * recent_images_ + static_cast<double>(progress.done - last_.done);
    recent_seconds_ = weight * recent_seconds_ + elapsed;
  }
  last_ = progress;
  last_seconds_ = now;
  running_ = true;
}

std::string ProgressBar::status(const Progress& progress) const {
  const int64_t percent = progress.total > 0 ? 100 * progress.done / progress.total : 0;
  std::string text = fmt::format("{:3}%", percent);
  if (!progress.figures.empty()) text += "  " + progress.figures;
  if (recent_images_ > 0 && recent_seconds_ > 0) {
    const double speed = recent_images_ / recent_seconds_;
    const double left = static_cast<double>(progress.total - progress.done + progress.after) / speed;
    const std::string rate = progress.bytes ? format_bytes(static_cast<uint64_t>(speed)) + "/s"
                                            : format_count(std::llround(speed)) + " images/s";
    text += fmt::format("  {}  ETA {}", rate, format_duration(left));
  }
  return text;
}

std::string ProgressBar::with_bar(const Progress& progress, int columns) const {
  const std::string right = status(progress);
  // The last column stays free: some terminals break the line there.
  const int width = std::max(columns - 1, 0);
  const auto taken = static_cast<int>(count_characters(progress.stage) + count_characters(right));
  const int room = width - taken - 4;  // a space, two brackets, a space
  std::string line = progress.stage + " ";
  if (room >= kNarrowestBar) {
    const int length = std::min(room, kWidestBar);
    const double fraction = progress.total > 0 ? static_cast<double>(progress.done) / progress.total : 0;
    const int full = std::clamp(static_cast<int>(fraction * length), 0, length);
    std::string bar = std::string(full, '=') + std::string(length - full, ' ');
    if (full < length) bar[full] = '>';
    line += "[" + bar + "] ";
  }
  line += right;
  return first_characters(line, static_cast<size_t>(width));
}

void ProgressBar::draw() {
  if (!drawn_.empty()) *output_.terminal << '\r' << drawn_ << "\033[K" << std::flush;
}

void ProgressBar::erase() {
  if (!drawn_.empty()) *output_.terminal << "\r\033[K" << std::flush;
}

void ProgressBar::before_log_line() {
  shown->mutex_.lock();
  shown->erase();
}

void ProgressBar::after_log_line() {
  shown->draw();
  shown->mutex_.unlock();
}

}  // namespace settrain
