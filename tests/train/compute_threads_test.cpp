#include "src/train/compute_threads.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <omp.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "src/core/error.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

constexpr double kWindow = 0.1;  // seconds

// Two threads on two cores: alone, and beside a process that keeps one core busy, as measured.
constexpr SchedulerCounts kAlone{.ran = 0.2, .waited = 0.002, .others = 0};
constexpr SchedulerCounts kBeside{.ran = 0.1, .waited = 0.07, .others = 0.1};

void add(SharedCores& cores, const SchedulerCounts& counts, int windows) {
  for (int i = 0; i < windows; ++i) cores.add(counts, kWindow);
}

// Over regions with pauses, in which the threads of libgomp's team wait for the next.
double seconds_of_processor(const at::Tensor& values) {
  const std::clock_t start = std::clock();
  for (int i = 0; i < 20; ++i) {
    values.add(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

int64_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

}  // namespace

TEST_CASE("Cores are shared from the second crowded window on, until they are quiet for a second") {
  SharedCores cores(2);
  add(cores, kAlone, 50);
  CHECK_FALSE(cores.are_shared());
  add(cores, kBeside, 1);
  add(cores, kAlone, 1);
  add(cores, kBeside, 1);
  CHECK_FALSE(cores.are_shared());  // each time for a moment only
  add(cores, kBeside, 1);
  CHECK(cores.are_shared());
  add(cores, kBeside, 50);
  CHECK(cores.are_shared());
  add(cores, kAlone, 30);
  CHECK_FALSE(cores.are_shared());
}

TEST_CASE("A process that hardly computes tells nothing about the cores") {
  SharedCores cores(2);
  add(cores, {.ran = 0.001, .waited = 0.004, .others = 0.2}, 110);
  CHECK_FALSE(cores.are_shared());
  CHECK(cores.advice(2).empty());
}

TEST_CASE("Fewer threads are advised once, where other processes take the cores for ten seconds") {
  SharedCores cores(2);
  add(cores, kAlone, 101);
  CHECK(cores.advice(2).empty());
  add(cores, kBeside, 50);
  CHECK(cores.advice(2).empty());  // for five seconds
  add(cores, kBeside, 60);
  CHECK_THAT(cores.advice(2), Contains("other processes have taken 1.0 of the 2 cores") &&
                                  Contains("41 % of their time") && Contains("1 compute thread (run.threads"));
  add(cores, kBeside, 110);
  CHECK(cores.advice(2).empty());
}

TEST_CASE("Nothing is advised where threads take the cores from each other, where enough are free, or for one thread") {
  SharedCores own(2), single(2), enough(4);
  add(enough, {.ran = 0.2, .waited = 0.09, .others = 0.2}, 110);
  CHECK(enough.advice(2).empty());
  add(own, {.ran = 0.2, .waited = 0.1, .others = 0}, 110);
  CHECK(own.advice(2).empty());
  add(single, kBeside, 110);
  CHECK(single.advice(1).empty());
}

TEST_CASE("OMP_NUM_THREADS has the limit of run.threads") {
  const char* before = std::getenv("OMP_NUM_THREADS");
  const std::string value = before ? before : "1";
  const auto threads_of = [](const char* text) {
    ::setenv("OMP_NUM_THREADS", text, 1);
    return threads_of_environment();
  };
  CHECK(threads_of("4") == 4);
  CHECK(threads_of("3,2") == 3);
  CHECK(threads_of("1024") == 1024);
  CHECK(threads_of("no number") == 0);
  CHECK(threads_of("-99999999999999999999") == 0);
  for (const char* many : {"1025", "5000", "99999999999999999999"}) {
    CHECK_THROWS_WITH(threads_of(many), Contains(many) && Contains("at most 1024"));
    CHECK_THROWS_AS(threads_of(many), ConfigError);
  }
  ::setenv("OMP_NUM_THREADS", value.c_str(), 1);
}

TEST_CASE("OMP_NUM_THREADS is read as libgomp reads it") {
  const char* before = std::getenv("OMP_NUM_THREADS");
  const std::string value = before ? before : "1";
  for (const char* four : {" 4", "+4", "4 ", "4,2"}) {
    ::setenv("OMP_NUM_THREADS", four, 1);
    CHECK(threads_of_environment() == 4);
  }
  ::setenv("OMP_NUM_THREADS", value.c_str(), 1);
}

TEST_CASE("A short spin ends with its object, takes less time of the processor, and changes no bit") {
  REQUIRE(ShortSpin::is_possible(omp_get_num_procs()));
  const int threads = at::get_num_threads();
  at::set_num_threads(2);
  const at::Tensor a = at::arange(512 * 512, at::kFloat).reshape({512, 512}).mul(0.37).sin();
  const at::Tensor expected = a.matmul(a).softmax(1).sum(0);
  const double long_spin = seconds_of_processor(a);
  const int64_t few = threads_of_process();
  {
    const ShortSpin spin;
    for (int i = 0; i < 1000 && threads_of_process() < few + 2; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (!std::getenv("OMP_WAIT_POLICY") && !std::getenv("GOMP_SPINCOUNT"))
      CHECK(seconds_of_processor(a) < 0.7 * long_spin);
    CHECK(at::equal(a.matmul(a).softmax(1).sum(0), expected));
  }
  for (int i = 0; i < 1000 && threads_of_process() > few; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  CHECK(threads_of_process() == few);
  CHECK(at::equal(a.matmul(a).softmax(1).sum(0), expected));
  at::set_num_threads(threads);
}

// In a process of its own, whose memory is limited: libgomp would end it.
TEST_CASE("A short spin is not possible where the system grants too few threads") {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    const rlimit none{1, 1};
    ::setrlimit(RLIMIT_AS, &none);
    ::_exit(ShortSpin::is_possible(60) ? 1 : 0);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  CHECK(ShortSpin::is_possible(60));
  CHECK_FALSE(ShortSpin::is_possible(65));
}
