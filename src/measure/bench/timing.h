// How long a piece of work takes, and how much memory.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

namespace settrain {

struct TurnOptions {
  int64_t rounds = 7;
  double min_seconds = 0.005;  // of one measurement, which repeats work that is shorter
  double max_seconds = 2;      // of all rounds of one work: a slow one takes part in the first of them alone
};

/// Fair timing on a machine that others use too: measures every one of `works` once in each round, in an order that
/// rotates, after each has run unmeasured. Returns seconds of one run, [works][rounds that it took part in, at least
/// 1]. `before_round` is told the number of each round. Throws Interrupted where a signal asks to stop.
std::vector<std::vector<double>> measure_in_turns(const std::vector<std::function<void()>>& works, c10::Device device,
                                                  const TurnOptions& options,
                                                  const std::function<void(int64_t)>& before_round = {});

/// Seconds that a GPU computes for `work`, without waiting for work to be launched: captured as a CUDA graph and
/// replayed many times over. None on the CPU, in a build without CUDA, and where the work cannot be captured.
std::optional<double> device_seconds(const std::function<void()>& work, c10::Device device);

/// The most bytes of tensors that `work` held at a time, above what was there before: what LibTorch's allocator of that
/// device gave out. On the CPU only what the calling thread asked for counts; memory that is not a tensor's does not.
int64_t peak_allocations(c10::Device device, const std::function<void()>& work);

}  // namespace settrain
