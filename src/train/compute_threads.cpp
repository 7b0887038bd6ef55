#include "src/train/compute_threads.h"

#include <ATen/Parallel.h>
#include <fmt/format.h>
#include <omp.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <charconv>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <system_error>
#include <utility>

#include "src/core/environment.h"
#include "src/core/error.h"
#include "src/core/log.h"

namespace settrain {
namespace {

constexpr std::chrono::milliseconds kWindow{100};
constexpr double kCrowded = 0.10, kQuiet = 0.03,
                 kWorthTelling = 0.20;  // shares of the threads' time, waiting for a core
constexpr int kCrowdedWindows = 2;
constexpr double kQuietSeconds = 1, kSecondsToTell = 10;
constexpr double kLeastActivity = 0.2;  // threads that run or wait, on average: fewer say nothing about the cores
constexpr double kLeastOthers = 0.5;    // cores

double waiting_share(const SchedulerCounts& counts) {
  const double total = counts.ran + counts.waited;
  return total > 0 ? counts.waited / total : 0;
}

void add_to(SchedulerCounts& sum, const SchedulerCounts& counts) {
  sum.ran += counts.ran;
  sum.waited += counts.waited;
  sum.others += counts.others;
}

// Seconds that the cores of this process were busy, whoever ran there: proc(5), /proc/stat.
double busy_seconds_of_cores() {
  cpu_set_t own;
  CPU_ZERO(&own);
  if (::sched_getaffinity(0, sizeof(own), &own) != 0) return 0;
  const double tick = 1.0 / static_cast<double>(::sysconf(_SC_CLK_TCK));
  std::ifstream file("/proc/stat");
  double busy = 0;
  for (std::string name; file >> name; file.ignore(4096, '\n')) {
    int core = -1;
    if (!name.starts_with("cpu") ||
        std::from_chars(name.data() + 3, name.data() + name.size(), core).ec != std::errc() || core >= CPU_SETSIZE ||
        !CPU_ISSET(static_cast<size_t>(core), &own)) {
      continue;
    }
    double user = 0, nice = 0, system = 0, idle = 0, io_wait = 0, irq = 0, soft_irq = 0;
    file >> user >> nice >> system >> idle >> io_wait >> irq >> soft_irq;
    busy += tick * (user + nice + system + irq + soft_irq);
  }
  return busy;
}

SchedulerCounts between(const SchedulerCounts& before, const SchedulerCounts& now) {
  // A thread that ended takes its counts along.
  return {std::max(0.0, now.ran - before.ran), std::max(0.0, now.waited - before.waited),
          std::max(0.0, now.others - before.others)};
}

// The thread that watches, for as long as the process runs.
class Watch {
 public:
  Watch() : thread_([this](const std::stop_token& stop) { run(stop); }) {}

  std::atomic<int64_t> threads = 1;

 private:
  void run(const std::stop_token& stop) {
    const bool may_wait_briefly = !std::getenv("OMP_WAIT_POLICY") && !std::getenv("GOMP_SPINCOUNT");
    SharedCores cores(omp_get_num_procs());
    std::optional<BriefWaits> brief;
    SchedulerCounts last = scheduler_counts();
    auto last_time = std::chrono::steady_clock::now();
    std::mutex mutex;
    std::condition_variable_any ended;
    std::unique_lock lock(mutex);
    while (!ended.wait_for(lock, stop, kWindow, [&stop] { return stop.stop_requested(); })) {
      const SchedulerCounts counts = scheduler_counts();
      const auto time = std::chrono::steady_clock::now();
      cores.add(between(last, counts), std::chrono::duration<double>(time - last_time).count());
      last = counts;
      last_time = time;
      if (threads < 2) {
        brief.reset();
        continue;
      }
      if (may_wait_briefly && cores.are_shared() != brief.has_value()) {
        if (brief) {
          brief.reset();
        } else {
          brief.emplace(threads);
        }
      }
      if (const std::string advice = cores.advice(threads); !advice.empty()) log::info(advice);
    }
  }

  std::jthread thread_;
};

}  // namespace

int64_t threads_of_environment() {
  const std::string value = environment_variable("OMP_NUM_THREADS").value_or("");
  int64_t number = 0;
  const auto [end, problem] = std::from_chars(value.data(), value.data() + value.size(), number);
  if (problem == std::errc::result_out_of_range || number > kMostThreads) {
    throw ConfigError(fmt::format("OMP_NUM_THREADS is {}: at most {} compute threads are taken, as by run.threads",
                                  value, kMostThreads));
  }
  return std::max<int64_t>(0, number);
}

void set_compute_threads(int64_t threads) {
  at::set_num_threads(static_cast<int>(threads));
  static Watch watch;
  watch.threads = threads;
}

SchedulerCounts scheduler_counts() {
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
  counts.others = std::max(0.0, busy_seconds_of_cores() - counts.ran);
  return counts;
}

void SharedCores::add(const SchedulerCounts& counts, double seconds) {
  add_to(advised_, counts);
  advised_seconds_ += seconds;
  if (counts.ran + counts.waited < kLeastActivity * seconds) return;
  if (!are_shared_) {
    crowded_windows_ = waiting_share(counts) > kCrowded ? crowded_windows_ + 1 : 0;
    are_shared_ = crowded_windows_ >= kCrowdedWindows;
    quiet_ = {};
    quiet_seconds_ = 0;
    return;
  }
  add_to(quiet_, counts);
  quiet_seconds_ += seconds;
  if (quiet_seconds_ < kQuietSeconds) return;
  are_shared_ = waiting_share(quiet_) > kQuiet;
  crowded_windows_ = 0;
  quiet_ = {};
  quiet_seconds_ = 0;
}

std::string SharedCores::advice(int64_t threads) {
  if (has_advised_ || advised_seconds_ < kSecondsToTell) return "";
  const SchedulerCounts counts = std::exchange(advised_, {});
  const double seconds = std::exchange(advised_seconds_, 0), others = counts.others / seconds;
  if (threads < 2 || waiting_share(counts) < kWorthTelling || others < kLeastOthers) return "";
  has_advised_ = true;
  const auto fewer =
      std::clamp<int64_t>(static_cast<int64_t>(static_cast<double>(cores_) - others + 0.25), 1, threads - 1);
  return fmt::format(
      "[run] the cores are shared: for {:.0f} s other processes have taken {:.1f} of the {} cores, and the threads of this "
      "one waited for a core for {:.0f} % of their time. {} compute thread{} (run.threads, or OMP_NUM_THREADS) in place "
      "of {} would probably be faster. A run that has begun keeps its number, on which the last bits depend",
      seconds, others, cores_, 100 * waiting_share(counts), fewer, fewer == 1 ? "" : "s", threads);
}

struct BriefWaits::Signal {
  std::mutex mutex{};
  std::condition_variable changed{};
  bool is_over = false;
};

BriefWaits::BriefWaits(int64_t threads) : end_(std::make_shared<Signal>()) {
  owner_ = std::thread([threads, end = end_] {
    // With the compute threads and this one's team there is one thread more than cores.
    const int team = std::max(2, omp_get_num_procs() - static_cast<int>(threads) + 2);
    std::atomic<int> begun = 0;  // GCC leaves out a region that does nothing
#pragma omp parallel num_threads(team)
    ++begun;
    std::unique_lock lock(end->mutex);
    end->changed.wait(lock, [&end] { return end->is_over; });
  });
}

BriefWaits::~BriefWaits() {
  {
    const std::lock_guard lock(end_->mutex);
    end_->is_over = true;
  }
  end_->changed.notify_all();
  owner_.join();
}

}  // namespace settrain
