#include "src/measure/bench/timing.h"

#include <c10/core/Allocator.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <memory>

#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/progress_bar.h"
#include "src/train/compute_policy.h"
#include "src/train/step_graph.h"

namespace settrain {
namespace {

// Seconds of `repetitions` runs.
double seconds_of(const std::function<void()>& work, int64_t repetitions, c10::Device device) {
  using Clock = std::chrono::steady_clock;
  wait_for(device);
  const auto start = Clock::now();
  for (int64_t i = 0; i < repetitions; ++i) {
    throw_if_interrupted();
    work();
  }
  wait_for(device);
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Seconds of one run, roughly. The first run also loads code and takes memory, and others use the machine too.
double least_seconds(const std::function<void()>& work, double enough, c10::Device device) {
  constexpr int kRuns = 4;
  double least = seconds_of(work, 1, device);
  for (int i = 1; i < kRuns && least < enough; ++i) least = std::min(least, seconds_of(work, 1, device));
  return std::max(least, 1e-7);
}

struct Plan {
  int64_t repetitions;  // in a round
  int64_t rounds;
};

Plan plan(const std::function<void()>& work, const TurnOptions& options, c10::Device device) {
  const double once = least_seconds(work, options.min_seconds, device);
  const double repetitions = std::max(1.0, std::ceil(options.min_seconds / once));
  const double rounds =
      std::clamp(std::floor(options.max_seconds / (repetitions * once)), 1.0, static_cast<double>(options.rounds));
  return {static_cast<int64_t>(repetitions), static_cast<int64_t>(rounds)};
}

// Follows the CPU memory of this thread, as LibTorch's profiler does. A block that was there before is not reported
// when it is freed.
class Counter : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void* /*block*/, int64_t bytes, size_t /*allocated*/, size_t /*reserved*/,
                         c10::Device device) override {
    if (!device.is_cpu()) return;
    held_ += bytes;  // negative for a block that is given back
    peak_ = std::max(peak_, held_);
  }
  bool memoryProfilingEnabled() const override { return true; }
  int64_t peak() const { return peak_; }

 private:
  int64_t held_ = 0, peak_ = 0;
};

int64_t peak_on_cpu(const std::function<void()>& work) {
  const auto counter = std::make_shared<Counter>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, counter);
  work();
  return counter->peak();
}

}  // namespace

std::vector<std::vector<double>> measure_in_turns(const std::vector<std::function<void()>>& works, c10::Device device,
                                                  const TurnOptions& options,
                                                  const std::function<void(int64_t)>& before_round) {
  // Trying everything once and each round count alike in the bar.
  ProgressBar bar;
  const int64_t parts = static_cast<int64_t>(works.size()) * (options.rounds + 1);
  int64_t done = 0;
  const auto show_progress = [&] {
    bar.update({.stage = "[bench] measurements", .done = done++, .total = parts, .after = 0, .figures = ""});
  };
  std::vector<Plan> plans;
  for (const auto& work : works) {
    show_progress();
    plans.push_back(plan(work, options, device));
  }
  std::vector<std::vector<double>> seconds(works.size());
  for (int64_t round = 0; round < options.rounds; ++round) {
    if (before_round) before_round(round);
    // The first rounds' starts are spread over all of the works.
    const size_t start = works.size() * static_cast<size_t>(round) / static_cast<size_t>(options.rounds);
    for (size_t i = 0; i < works.size(); ++i) {
      const size_t who = (start + i) % works.size();
      show_progress();
      if (round >= plans[who].rounds) continue;
      const int64_t repetitions = plans[who].repetitions;
      seconds[who].push_back(seconds_of(works[who], repetitions, device) / static_cast<double>(repetitions));
    }
  }
  bar.hide();
  return seconds;
}

std::optional<double> device_seconds(const std::function<void()>& work, c10::Device device) {
  constexpr int kWarmUp = 3, kReplays = 50;
  constexpr int kRepetitions = 20;  // in a graph, whose launch would otherwise take longer than the work
  const Capture capture = device.is_cuda() ? cuda_graph_capture(device) : Capture();
  if (!capture) return std::nullopt;
  for (int i = 0; i < kWarmUp; ++i) work();
  std::function<void()> replay;
  try {
    replay = capture([&] {
      for (int i = 0; i < kRepetitions; ++i) work();
    });
  } catch (const c10::Error&) {
    return std::nullopt;
  } catch (const Error&) {  // of a kernel that was the first to notice
    return std::nullopt;
  }
  const c10::Stream stream = c10::impl::VirtualGuardImpl(device.type()).getStream(device);
  c10::Event start(device.type(), c10::EventFlag::BACKEND_DEFAULT), end(device.type(), c10::EventFlag::BACKEND_DEFAULT);
  for (int i = 0; i < kWarmUp; ++i) replay();
  start.record(stream);
  for (int i = 0; i < kReplays; ++i) replay();
  end.record(stream);
  end.synchronize();
  return start.elapsedTime(end) / 1000 / (kReplays * kRepetitions);
}

int64_t peak_allocations(c10::Device device, const std::function<void()>& work) {
  if (device.is_cuda()) {
    c10::DeviceAllocator& allocator = *c10::getDeviceAllocator(device.type());
    const c10::DeviceIndex index = c10::impl::VirtualGuardImpl(device.type()).getStream(device).device_index();
    const auto held = [&] { return allocator.getDeviceStats(index).allocated_bytes[0]; };  // of all pools
    wait_for(device);
    allocator.resetPeakStats(index);
    const int64_t before = held().current;
    work();
    wait_for(device);
    return held().peak - before;
  }
  return device.is_cpu() ? peak_on_cpu(work) : 0;
}

}  // namespace settrain
