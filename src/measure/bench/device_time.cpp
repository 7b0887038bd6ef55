#include "src/measure/bench/device_time.h"

#include <ATen/ops/zeros.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>

#include "src/core/error.h"
#include "src/train/step_graph.h"

namespace settrain {
namespace {

constexpr int kWarmUp = 3, kReplays = 50;
constexpr int kRepetitions = 20;  // in a graph, whose launch would otherwise take longer than the work

}  // namespace

std::optional<double> device_seconds(const std::function<void()>& work, c10::Device device) {
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

std::vector<DeviceTime> measure_device_times(const LossRegistry& registry, const LossBenchOptions& options,
                                             at::Device device) {
  std::vector<DeviceTime> times;
  const auto add = [&](const std::string& name, const std::function<void()>& work) {
    if (const std::optional<double> seconds = device_seconds(work, device)) times.push_back({name, *seconds});
  };
  const at::Tensor one = at::zeros({1}, device);
  add("a small kernel", [&] { one.add_(1); });
  for (const LossEntry& entry : registry.entries()) {
    if (!entry.has_kernels || !is_asked_for(options, entry.name)) continue;
    LossCase what = options.base;
    what.loss = entry.name;
    what.epsilon = options.epsilons.front();
    what.scores_sd = options.scores_sds.front();
    LossSubject subject(registry, what, device);
    add(entry.name, [&] { subject.step(); });
  }
  return times;
}

}  // namespace settrain
