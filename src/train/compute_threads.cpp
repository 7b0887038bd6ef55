#include "src/train/compute_threads.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <charconv>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <ctime>
#include <exception>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <stop_token>
#include <system_error>
#include <utility>
#include <vector>

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/process.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr std::chrono::milliseconds kWindow{100};
constexpr double kCrowded = 0.10, kQuiet = 0.03,
                 kWorthTelling = 0.20;  // shares of the threads' time, waiting for a core
constexpr int kCrowdedWindows = 2;
constexpr double kQuietSeconds = 1, kSecondsToTell = 10;
constexpr double kLeastActivity = 0.2;  // threads that run or wait, on average: fewer say nothing about the cores
constexpr int kMostCores = 64;          // beyond, an idle thread for each costs more than it brings

double waiting_share(const SchedulerCounts& counts) {
  const double total = counts.ran + counts.waited;
  return total > 0 ? counts.waited / total : 0;
}

// Seconds that the cores of this process were busy, whoever ran there: proc(5), /proc/stat. None where it is not there.
std::optional<double> busy_seconds_of_cores() {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof(own), &own) != 0) return std::nullopt;
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream file("/proc/stat");
  if (!file) return std::nullopt;
  double busy = 0;
  for (std::string name; file >> name; file.ignore(4096, '\n')) {
    if (!name.starts_with("cpu")) continue;
    const int core = parse_number<int>(std::string_view(name).substr(3)).value_or(CPU_SETSIZE);
    if (core >= CPU_SETSIZE || !CPU_ISSET(static_cast<size_t>(core), &own)) continue;
    double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0;
    file >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq;
    busy += tick * (user + nice + system + irq + soft_irq);
  }
  return busy;
}

SchedulerCounts sum(const SchedulerCounts& a, const SchedulerCounts& b) {
  return {a.ran + b.ran, a.waited + b.waited, a.others + b.others};
}

// A thread that ended takes its counts along.
SchedulerCounts between(const SchedulerCounts& before, const SchedulerCounts& now) {
  return {std::max(0.0, now.ran - before.ran), std::max(0.0, now.waited - before.waited),
          std::max(0.0, now.others - before.others)};
}

// The thread that watches, for as long as the process runs.
class Watch {
 public:
  Watch() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  std::atomic<int64_t> threads = 1;

 private:
  // A process that computes well must not end because of its watch.
  void run(const std::stop_token& stop) {
    try {
      std::mutex mutex;
      std::condition_variable_any ended;
      std::unique_lock lock(mutex);
      while (!ended.wait_for(lock, stop, kWindow, [&stop] { return stop.stop_requested(); })) look();
    } catch (const std::exception& error) {
      log::warning(fmt::format("[run] the cores are not watched any more: {}", error.what()));
    }
  }

  void look() {
    if (threads < 2) {
      short_spin_.reset();
      last_.reset();
      return;
    }
    const std::optional<SchedulerCounts> counts = scheduler_counts();
    const auto now = std::chrono::steady_clock::now();
    if (counts && last_) cores_.add(between(*last_, *counts), std::chrono::duration<double>(now - last_time_).count());
    last_ = counts;
    last_time_ = now;
    if (!cores_.are_shared()) {
      short_spin_.reset();
    } else if (!short_spin_ && can_shorten_) {
      can_shorten_ = ShortSpin::is_possible(omp_get_num_procs());
      if (can_shorten_) short_spin_.emplace();
    }
    if (const std::string advice = cores_.advice(threads); !advice.empty()) log::info(advice);
  }

  SharedCores cores_{omp_get_num_procs()};
  std::optional<ShortSpin> short_spin_{};
  bool can_shorten_ = true;
  std::optional<SchedulerCounts> last_{};
  std::chrono::steady_clock::time_point last_time_{};
  std::jthread thread_;  // last: it uses the others
};

// Whether the user decided how threads wait or where they run.
bool has_user_decided() {
  const std::array names{"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "OMP_PROC_BIND", "GOMP_CPU_AFFINITY"};
  return std::ranges::any_of(names, [](const char* name) { return environment_variable(name).has_value(); });
}

}  // namespace

int64_t threads_of_environment() {
  const std::string value = environment_variable("OMP_NUM_THREADS").value_or("");
  const size_t start = std::min(value.find_first_not_of(" \t\n\v\f\r+"), value.size());  // as libgomp reads it
  if (value.substr(start).starts_with('-')) return 0;
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(value.data() + start, value.data() + value.size(), number);
  if (problem == std::errc::result_out_of_range || number > kMostThreads) {
    throw ConfigError(fmt::format("OMP_NUM_THREADS is {}: at most {} compute threads are taken, as by run.threads",
                                  value, kMostThreads));
  }
  return std::max<int64_t>(0, number);
}

void set_compute_threads(int64_t threads) {
  at::set_num_threads(static_cast<int>(threads));
  static const bool has_decided = has_user_decided();
  if (has_decided) return;
  static Watch watch;
  watch.threads = threads;
}

std::optional<SchedulerCounts> scheduler_counts() {
  const std::optional<double> busy = busy_seconds_of_cores();
  SchedulerCounts counts;
  timespec own{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0)
    counts.ran = static_cast<double>(own.tv_sec) + 1e-9 * static_cast<double>(own.tv_nsec);
  std::error_code problem;
  for (std::filesystem::directory_iterator task("/proc/self/task", problem), end; !problem && task != end;
       task.increment(problem)) {
    double ran = 0, waited = 0;  // nanoseconds
    if (std::ifstream(task->path() / "schedstat") >> ran >> waited) counts.waited += 1e-9 * waited;
  }
  if (!busy || problem) return std::nullopt;
  counts.others = std::max(0.0, *busy - counts.ran);
  return counts;
}

void SharedCores::add(const SchedulerCounts& counts, double seconds) {
  advised_ = sum(advised_, counts);
  advised_seconds_ += seconds;
  if (counts.ran + counts.waited < kLeastActivity * seconds) return;
  if (are_shared_) {
    quiet_ = sum(quiet_, counts);
    quiet_seconds_ += seconds;
    if (quiet_seconds_ < kQuietSeconds) return;
    are_shared_ = waiting_share(quiet_) > kQuiet;
    crowded_windows_ = 0;
  } else {
    crowded_windows_ = waiting_share(counts) > kCrowded ? crowded_windows_ + 1 : 0;
    are_shared_ = crowded_windows_ >= kCrowdedWindows;
  }
  quiet_ = {};
  quiet_seconds_ = 0;
}

std::string SharedCores::advice(int64_t threads) {
  if (has_advised_ || advised_seconds_ < kSecondsToTell) return "";
  const SchedulerCounts counts = std::exchange(advised_, {});
  const double seconds = std::exchange(advised_seconds_, 0), others = counts.others / seconds;
  const bool computes = counts.ran + counts.waited >= kLeastActivity * seconds;
  const auto fewer = std::max<int64_t>(1, std::llround(static_cast<double>(cores_) - others));
  if (!computes || waiting_share(counts) < kWorthTelling || fewer >= threads) return "";
  has_advised_ = true;
  return fmt::format(
      "[run] the cores are shared: for {:.0f} s other processes have taken {:.1f} of the {} cores, and this process's "
      "threads waited for a core for {:.0f} % of their time. {} compute thread{} (run.threads, --threads or OMP_NUM_THREADS) in place "
      "of {} would probably be at least as fast. A training that has begun keeps its number, on which the last bits depend",
      seconds, others, cores_, 100 * waiting_share(counts), fewer, fewer == 1 ? "" : "s", threads);
}

bool ShortSpin::is_possible(int cores) {
  if (cores > kMostCores) return false;
  std::promise<void> end;
  const std::shared_future<void> is_over = end.get_future().share();
  std::vector<std::thread> tried;
  bool could_start = true;
  try {
    for (int i = 0; i <= cores; ++i) tried.emplace_back([is_over] { is_over.wait(); });
  } catch (const std::exception&) {
    could_start = false;
  }
  end.set_value();
  for (std::thread& thread : tried) thread.join();
  return could_start;
}

ShortSpin::ShortSpin()
    : owner_([is_over = end_.get_future().share()] {
        std::atomic<int> started = 0;  // GCC leaves out a region that does nothing
#pragma omp parallel num_threads(omp_get_num_procs() + 1)
        ++started;
        is_over.wait();
      }) {
}

ShortSpin::~ShortSpin() {
  end_.set_value();
  owner_.join();
}

}  // namespace settrain
