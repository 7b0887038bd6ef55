// The threads that compute, on cores that other processes may use too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <thread>

namespace settrain {

/// The most compute threads that a process takes, by run.threads as by OMP_NUM_THREADS.
inline constexpr int64_t kMostThreads = 1024;

/// OMP_NUM_THREADS (a list's first number), or 0 where it holds none. Throws ConfigError where it is over kMostThreads.
int64_t threads_of_environment();

/// Sets ATen's compute threads. From the first call on, a thread of its own reads the scheduler's counts ten times a
/// second. While other threads take the cores, it makes the compute threads wait briefly for each other (BriefWaits),
/// unless OMP_WAIT_POLICY or GOMP_SPINCOUNT is set, and it logs once that fewer threads are likely to be faster. The
/// number of threads stays as it is, and so do the results' bits.
void set_compute_threads(int64_t threads);

/// The scheduler's counts for the threads of a process over some time, in seconds.
struct SchedulerCounts {
  double ran = 0;     // on a core, summed over the threads
  double waited = 0;  // for a core, while they could have run
  double others = 0;  // cores' time that other processes took, of the cores that this process may run on
};

/// This process' counts since it began; `others` since the machine did. All 0 where Linux does not tell them.
SchedulerCounts scheduler_counts();

/// Decides from the scheduler's counts whether other threads take the cores of the compute threads.
class SharedCores {
 public:
  /// `cores`: those that this process may run on.
  explicit SharedCores(int64_t cores) : cores_(cores) {}

  /// Adds the counts of the `seconds` since the last call.
  void add(const SchedulerCounts& counts, double seconds);

  /// Whether compute threads should wait briefly: from two windows on in which the threads waited for a core for over a
  /// tenth of their time, until they did so for less than 3 % over a second.
  bool are_shared() const { return are_shared_; }

  /// Advice for the user of a process with `threads` compute threads, given at most once: after ten seconds in which
  /// the threads waited for a core for over a fifth of their time, while other processes took at least half a core.
  /// Otherwise empty.
  std::string advice(int64_t threads);

 private:
  int64_t cores_;
  bool are_shared_ = false, has_advised_ = false;
  int crowded_windows_ = 0;
  SchedulerCounts quiet_{}, advised_{};  // since are_shared() and advice() were last decided
  double quiet_seconds_ = 0, advised_seconds_ = 0;
};

/// While it lives, compute threads of libgomp that wait for each other sleep after about 100 looks in place of 300,000
/// (3 ms or more). Where a core is shared, the thread that is waited for may not be running, and to look on for so long
/// keeps it from running. libgomp has no call for that, but a rule in its manual (GOMP_SPINCOUNT): it looks 100 times
/// only while there are more OpenMP threads than cores. So this keeps a team of idle threads, one more than there are
/// cores for.
class BriefWaits {
 public:
  /// `threads`: the compute threads, at least 2.
  explicit BriefWaits(int64_t threads);
  ~BriefWaits();
  BriefWaits(const BriefWaits&) = delete;
  BriefWaits& operator=(const BriefWaits&) = delete;

 private:
  struct Signal;
  std::shared_ptr<Signal> end_;
  std::thread owner_;  // libgomp ends a team with the thread that began it
};

}  // namespace settrain
