// Log lines for people: on stderr, and in a run's log.txt once one is open. A line starts with its area: "[train] ...".
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

namespace settrain::log {

void info(std::string_view line);
void warning(std::string_view line);
void error(std::string_view line);

/// From now on every line also goes to `file` (appended, flushed line by line). Throws RunError where it cannot be
/// opened.
void open_file(const std::filesystem::path& file);
void close_file();

/// Called around every line written to the terminal, so that a progress bar can take itself off the screen and come
/// back.
struct TerminalGuard {
  void (*before)() = nullptr;
  void (*after)() = nullptr;
};
void set_terminal_guard(TerminalGuard guard);

/// For one of several processes that do the same work. All but the first (rank 0) log only warnings and errors, with
/// their rank in front.
void speak_as_process(int64_t rank);

/// Logs only errors while it lives: for work that every process repeats and the first one reports.
class OnlyErrors {
 public:
  explicit OnlyErrors(bool is_active);
  ~OnlyErrors();
  OnlyErrors(const OnlyErrors&) = delete;
  OnlyErrors& operator=(const OnlyErrors&) = delete;

 private:
  int before_;  // spdlog's level
};

}  // namespace settrain::log
