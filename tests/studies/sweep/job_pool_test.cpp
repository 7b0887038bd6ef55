#include "src/studies/sweep/job_pool.h"

#include <algorithm>
#include <chrono>
#include <stdexcept>
#include <system_error>

#include "tests/support/catch2.h"
#include "tests/support/child_process.h"

namespace settrain {
namespace {

using Catch::Contains;
using Words = std::vector<std::string>;

Words shell(const std::string& script) {
  return {"sh", "-c", script};
}

// Until nothing is left: what ended, and the most programs that were seen at work at a time.
struct Outcome {
  std::vector<EndedJob> ended;
  int64_t most = 0;
};

Outcome wait_for(JobPool& pool) {
  Outcome outcome;
  while (!pool.is_done()) {
    for (EndedJob& job : pool.take_ended()) outcome.ended.push_back(std::move(job));
    const auto running = pool.places();
    outcome.most = std::max<int64_t>(
        outcome.most, std::count_if(running.begin(), running.end(), [](const auto& job) { return job.item >= 0; }));
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  std::sort(outcome.ended.begin(), outcome.ended.end(), [](const auto& a, const auto& b) { return a.item < b.item; });
  return outcome;
}

}  // namespace

TEST_CASE("every item's program runs once, several at a time") {
  std::atomic<int64_t> wrong_places{0};
  JobPool pool({0, 1, 2, 3, 4, 5, 6, 7, 8, 9}, 3, -1, [&](int64_t item, int64_t place) {
    if (place < 0 || place >= 3) ++wrong_places;
    return shell("sleep 0.1; echo item " + std::to_string(item) + "; exit " + std::to_string(item));
  });
  const Outcome outcome = wait_for(pool);
  CHECK(wrong_places == 0);
  CHECK(outcome.most >= 2);
  CHECK(outcome.most <= 3);
  REQUIRE(outcome.ended.size() == 10);
  for (int64_t item = 0; item < 10; ++item) {
    const EndedJob& job = outcome.ended[static_cast<size_t>(item)];
    CHECK(job.item == item);
    CHECK(job.end.code == item);
    CHECK(job.end.printed == "item " + std::to_string(item));
    CHECK(job.problem.empty());
    CHECK(job.seconds >= 0.1);
  }
}

TEST_CASE("a program that cannot be made says why, and the others run") {
  JobPool pool({0, 1, 2}, 2, -1, [](int64_t item, int64_t) {
    if (item == 1) throw std::runtime_error("no such item");
    return shell("exit 0");
  });
  const Outcome outcome = wait_for(pool);
  REQUIRE(outcome.ended.size() == 3);
  CHECK(outcome.ended[0].problem.empty());
  CHECK(outcome.ended[1].problem == "no such item");
  CHECK(outcome.ended[2].problem.empty());
}

TEST_CASE("a pool that is stopped, or goes, ends its programs and begins no other") {
  std::atomic<int64_t> begun{0};
  const auto sleeper = [&](int64_t, int64_t) {
    ++begun;
    return shell("sleep 60");
  };
  const auto start = std::chrono::steady_clock::now();
  {
    JobPool pool({0, 1, 2, 3}, 2, -1, sleeper);
    while (begun < 2) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    pool.stop();
    CHECK(wait_for(pool).ended.empty());
    const JobPool gone({4, 5, 6}, 2, -1, sleeper);
  }
  CHECK(begun <= 4);
  CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));
}

TEST_CASE("where threads cannot be had no program is begun, and the error can be caught") {
  const int code = test::run_in_child([] {
    if (::geteuid() == 0 && ::setuid(65534) != 0) return 1;  // root has no limit
    const rlimit few{4, 4};
    if (::setrlimit(RLIMIT_NPROC, &few) != 0) return 2;
    std::atomic<int64_t> begun{0};
    try {
      const JobPool pool({0, 1, 2, 3, 4, 5, 6, 7}, 8, -1, [&](int64_t, int64_t) {
        ++begun;
        return shell("exit 0");
      });
    } catch (const std::system_error&) {
      return begun == 0 ? 0 : 3;
    }
    return 4;
  });
  CHECK(code == 0);
}

}  // namespace settrain
