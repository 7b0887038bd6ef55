// The threads that compute, on cores that other processes may use too.
#pragma once

#include <cstdint>
#include <future>
#include <optional>
#include <string>
#include <thread>

namespace settrain {

/// The most compute threads that a process takes, by run.threads as by OMP_NUM_THREADS.
inline constexpr int64_t kMostThreads = 1024;

/// OMP_NUM_THREADS (a list's first number), or 0 where it holds none. Throws ConfigError where it is over kMostThreads.
int64_t threads_of_environment();

/// Sets ATen's compute threads. From the first call on, a thread of its own reads the scheduler's counts ten times a
/// second. While other threads take the cores, it shortens the spinning of the compute threads (ShortSpin), and it logs
/// once if fewer threads are likely to be faster. The number of threads stays as it is, and so do the results' bits.
/// Nothing is watched where the user decided: where OMP_WAIT_POLICY, GOMP_SPINCOUNT, OMP_PROC_BIND or GOMP_CPU_AFFINITY
/// is set.
void set_compute_threads(int64_t threads);

/// The scheduler's counts for the threads of a process over some time, in seconds.
struct SchedulerCounts {
  double ran = 0;     // on a core, summed over the threads
  double waited = 0;  // for a core, while they could have run
  double others = 0;  // cores' time that other processes took, of the cores that this process may run on
};

/// The counts of this process' living threads, and since the machine started of `others`. None where Linux does not
/// tell them.
std::optional<SchedulerCounts> scheduler_counts();

/// Decides from the scheduler's counts whether other threads take the cores of the compute threads.
class SharedCores {
 public:
  /// `cores`: those that this process may run on.
  explicit SharedCores(int64_t cores) : cores_(cores) {}

  /// Adds the counts of the `seconds` since the last call.
  void add(const SchedulerCounts& counts, double seconds);

  /// Whether compute threads should spin shortly: from two windows on in which the threads waited for a core for over a
  /// tenth of their time, until they did so for less than 3 % over a second.
  bool are_shared() const { return are_shared_; }

  /// Advice for the user of a process with `threads` compute threads, given at most once: after ten seconds in which
  /// the threads waited for a core for over a fifth of their time, while other processes left fewer cores than
  /// `threads`. Otherwise empty.
  std::string advice(int64_t threads);

 private:
  int64_t cores_;
  bool are_shared_ = false, has_advised_ = false;
  int crowded_windows_ = 0;
  SchedulerCounts quiet_{}, advised_{};  // since are_shared() and advice() were last decided
  double quiet_seconds_ = 0, advised_seconds_ = 0;
};

/// While it lives, libgomp's threads that wait at a barrier spin about 100 times before they sleep, in place of 300,000
/// (3 ms or more). Where a core is shared, a spinning thread can occupy the core that the missing thread needs. libgomp
/// has no call for that, but a rule in its manual (GOMP_SPINCOUNT): it spins 100 times only while there are more OpenMP
/// threads than cores. So this keeps a team of idle threads, one more than there are cores.
class ShortSpin {
 public:
  /// Whether the team can be started: there are at most 64 cores, and the system grants as many threads now. libgomp
  /// ends the process where it cannot start a thread.
  static bool is_possible(int cores);

  ShortSpin();
  ~ShortSpin();
  ShortSpin(const ShortSpin&) = delete;
  ShortSpin& operator=(const ShortSpin&) = delete;

 private:
  std::promise<void> end_{};
  std::thread owner_;  // libgomp ends a team with the thread that started it
};

}  // namespace settrain
