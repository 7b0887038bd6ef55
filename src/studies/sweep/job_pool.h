// Several programs at a time, each in a place of its own.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "src/core/child_process.h"

namespace settrain {

/// A program that has ended.
struct EndedJob {
  int64_t item = 0;
  ChildEnd end{};
  std::string problem{};  // why it could not be started; empty where it was
  double seconds = 0;
};

/// Runs a program for each item, at most `places` at a time, in the items' order. Every program is also ended, by
/// SIGTERM, where this process ends.
class JobPool {
 public:
  /// `command(item, place)`: the program and its arguments, called on any thread. `keep_open`: a descriptor that every
  /// program inherits, such as a lock's; -1 for none. Throws std::system_error, with no program begun, where there are
  /// no more threads to be had.
  JobPool(std::deque<int64_t> items, int64_t places, int keep_open,
          std::function<std::vector<std::string>(int64_t, int64_t)> command);
  /// Ends what still runs, and waits for it.
  ~JobPool();
  JobPool(const JobPool&) = delete;
  JobPool& operator=(const JobPool&) = delete;

  /// Begins no further item, and tells the running programs to end.
  void stop() { stopped_ = true; }

  /// The programs that have ended since the last call.
  std::vector<EndedJob> take_ended();

  /// A place, with the item that runs in it (-1: none) since a time.
  struct Place {
    int64_t item = -1;
    std::chrono::steady_clock::time_point since{};
  };
  std::vector<Place> places();

  /// Whether nothing runs any more, nothing is to come, and take_ended() has returned all.
  bool is_done();

 private:
  void work(int64_t place);
  void join();

  std::function<std::vector<std::string>(int64_t, int64_t)> command_;
  int keep_open_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::deque<int64_t> items_;
  std::vector<EndedJob> ended_;
  std::vector<Place> places_;
  int64_t at_work_ = 0;
  std::vector<std::thread> threads_;
};

}  // namespace settrain
