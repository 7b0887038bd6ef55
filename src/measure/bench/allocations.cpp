#include "src/measure/bench/allocations.h"

#include <c10/core/Allocator.h>
#include <c10/util/ThreadLocalDebugInfo.h>

#include <algorithm>
#include <memory>

#include "src/train/compute_policy.h"

#ifdef SETTRAIN_HAS_CUDA
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace settrain {
namespace {

// What LibTorch's profiler hangs in to follow its memory. A block that was there before is not reported when it goes.
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

int64_t peak_allocations(c10::Device device, const std::function<void()>& work) {
#ifdef SETTRAIN_HAS_CUDA
  if (device.is_cuda()) {
    namespace allocator = c10::cuda::CUDACachingAllocator;
    const c10::DeviceIndex index = device.has_index() ? device.index() : c10::cuda::current_device();
    const auto held = [index] { return allocator::getDeviceStats(index).allocated_bytes[0]; };  // of all pools
    wait_for(device);
    allocator::resetPeakStats(index);
    const int64_t before = held().current;
    work();
    wait_for(device);
    return held().peak - before;
  }
#endif
  return device.is_cpu() ? peak_on_cpu(work) : 0;
}

}  // namespace settrain
