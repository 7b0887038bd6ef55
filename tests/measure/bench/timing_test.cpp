#include "src/measure/bench/timing.h"

#include <ATen/ATen.h>

#include <chrono>
#include <thread>

#include "src/measure/bench/loss_bench.h"
#include "tests/support/builtin_losses.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("everyone is measured once in a round, in an order that rotates") {
  std::vector<int> order;
  int64_t rounds_begun = 0;
  const auto work = [&](int who) { return [&order, who] { order.push_back(who); }; };
  const TurnOptions options{.rounds = 3, .min_seconds = 0};
  const auto seconds = measure_in_turns({work(0), work(1), work(2)}, c10::kCPU, options, [&](int64_t round) {
    CHECK(round == rounds_begun++);
    if (round == 0) order.clear();
  });
  CHECK(order == std::vector<int>{0, 1, 2, 1, 2, 0, 2, 0, 1});
  REQUIRE(seconds.size() == 3);
  for (const auto& of_one : seconds) CHECK(of_one.size() == 3);
}

TEST_CASE("what is short is repeated, and what is slow takes part in fewer rounds") {
  int runs = 0;
  const auto sleep = [&runs] {
    ++runs;
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const auto seconds = measure_in_turns({sleep}, c10::kCPU, {.rounds = 1, .min_seconds = 0.02});
  CHECK(seconds[0][0] >= 0.002);
  CHECK(runs >= 1 + 2);  // a sleep may take longer than it should
  const auto few = measure_in_turns({sleep}, c10::kCPU, {.rounds = 5, .min_seconds = 0, .max_seconds = 0});
  CHECK(few[0].size() == 1);
}

TEST_CASE("on the CPU there is no time of the device apart") {
  int runs = 0;
  CHECK_FALSE(device_seconds([&] { ++runs; }, at::kCPU));
  CHECK(runs == 0);
  CHECK(measure_device_times(test::builtin_losses(), {}, at::kCPU).empty());
}

constexpr int64_t kMebi = 1 << 20;

TEST_CASE("the most that is held at a time counts, and what was there before does not") {
  at::Tensor before = at::empty({4 * kMebi}, at::kByte), kept;
  const int64_t peak = peak_allocations(at::kCPU, [&] {
    before.reset();
    at::empty({3 * kMebi}, at::kByte);
    kept = at::empty({kMebi}, at::kByte);
    at::empty({kMebi}, at::kByte);
  });
  CHECK(peak >= 3 * kMebi);
  CHECK(peak < 3 * kMebi + 4096);
}

TEST_CASE("the backward pass counts too") {
  const at::Tensor x = at::ones({kMebi / 4}).requires_grad_();
  const int64_t peak = peak_allocations(at::kCPU, [&] { x.exp().sum().backward(); });
  CHECK(peak >= 2 * kMebi);  // exp(x), kept for the gradient, and that
  CHECK(peak <= 4 * kMebi);
}

}  // namespace
}  // namespace settrain
