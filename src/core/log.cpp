#include "src/core/log.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>

#include <atomic>
#include <cstdio>
#include <iostream>
#include <memory>
#include <mutex>
#include <string>

#include "src/core/error.h"
#include "src/core/process.h"

namespace settrain::log {
namespace {

// Plain lines on stderr, with "warning:" or "error:" in front, coloured where the terminal has colours.
class TerminalSink final : public spdlog::sinks::base_sink<std::mutex> {
 public:
  void set_guard(TerminalGuard guard) {
    const std::lock_guard lock(mutex_);
    guard_ = guard;
  }

  void set_speaker(const std::string& speaker) {
    const std::lock_guard lock(mutex_);
    speaker_ = speaker;
  }

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    std::string line;
    if (message.level == spdlog::level::warn) line = prefix("warning:", "33");
    if (message.level == spdlog::level::err) line = prefix("error:", "31");
    line += speaker_;
    line.append(message.payload.data(), message.payload.size());
    line += '\n';
    // Text printed before comes before this line where both go to one file. A failure stays noted in std::cout.
    std::cout.flush();
    if (guard_.before) guard_.before();
    std::fwrite(line.data(), 1, line.size(), stderr);
    std::fflush(stderr);
    if (guard_.after) guard_.after();
  }

  void flush_() override {}

  static std::string prefix(const std::string& word, const std::string& colour) {
    if (!stderr_has_colour()) return word + " ";
    return "\033[" + colour + "m" + word + "\033[0m ";
  }

  TerminalGuard guard_;
  std::string speaker_;  // stands before every line's text
};

// The one log of the program. It is never destroyed, since destructors that run at exit may still log.
struct Log {
  std::shared_ptr<TerminalSink> terminal = std::make_shared<TerminalSink>();
  std::shared_ptr<spdlog::sinks::sink> file;
  std::shared_ptr<spdlog::sinks::dist_sink_mt> sinks = std::make_shared<spdlog::sinks::dist_sink_mt>();
  spdlog::logger logger{"settrain", sinks};

  Log() {
    sinks->add_sink(terminal);
    logger.flush_on(spdlog::level::info);
    logger.set_error_handler([](const std::string& reason) {
      static std::atomic<bool> has_warned{false};
      if (!has_warned.exchange(true)) std::fprintf(stderr, "warning: the log file misses lines: %s\n", reason.c_str());
    });
  }
};

Log& instance() {
  static Log& log = *new Log;
  return log;
}

}  // namespace

void info(std::string_view line) {
  instance().logger.info(line);
}
void warning(std::string_view line) {
  instance().logger.warn(line);
}
void error(std::string_view line) {
  instance().logger.error(line);
}

void open_file(const std::filesystem::path& file) {
  close_file();
  try {
    instance().file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(file.string());
  } catch (const spdlog::spdlog_ex& failure) {
    throw RunError("cannot open the log '" + file.string() + "': " + failure.what());
  }
  instance().file->set_pattern("%Y-%m-%d %H:%M:%S.%e %l: %v");
  instance().sinks->add_sink(instance().file);
}

void close_file() {
  if (instance().file) instance().sinks->remove_sink(instance().file);
  instance().file.reset();
}

void set_terminal_guard(TerminalGuard guard) {
  instance().terminal->set_guard(guard);
}

void speak_as_process(int64_t rank) {
  if (rank == 0) return;
  instance().logger.set_level(spdlog::level::warn);
  instance().terminal->set_speaker("process " + std::to_string(rank) + ": ");
}

OnlyErrors::OnlyErrors(bool is_active) : before_(instance().logger.level()) {
  if (is_active) instance().logger.set_level(spdlog::level::err);
}

OnlyErrors::~OnlyErrors() {
  instance().logger.set_level(static_cast<spdlog::level::level_enum>(before_));
}

}  // namespace settrain::log
