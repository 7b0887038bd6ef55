// How long a GPU computes, without the time that it waits for work to be launched.
#pragma once

#include <c10/core/Device.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/measure/bench/loss_bench.h"

namespace settrain {

/// Seconds that the device takes for `work`, which is captured as a CUDA graph and replayed many times over. None on
/// the CPU, in a build without CUDA, and where the work cannot be captured.
std::optional<double> device_seconds(const std::function<void()>& work, c10::Device device);

struct DeviceTime {
  std::string work;
  double seconds;
};

/// A small kernel, which is the floor, and the forward and backward pass of the losses that have kernels, as far as
/// they are asked for. Empty where nothing can be captured.
std::vector<DeviceTime> measure_device_times(const LossRegistry& registry, const LossBenchOptions& options,
                                             at::Device device);

}  // namespace settrain
