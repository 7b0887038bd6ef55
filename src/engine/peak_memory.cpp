#include "src/engine/peak_memory.h"

#include <sys/resource.h>

#ifdef SETTRAIN_HAS_CUDA
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace settrain {

PeakMemory peak_memory() {
  PeakMemory peak;
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) == 0) peak.host = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
#ifdef SETTRAIN_HAS_CUDA
  namespace allocator = c10::cuda::CUDACachingAllocator;
  for (c10::DeviceIndex i = 0; at::hasCUDA() && allocator::get()->initialized() && i < c10::cuda::device_count(); ++i) {
    const auto& held = allocator::getDeviceStats(i).reserved_bytes;
    peak.device += static_cast<uint64_t>(held[0].peak);  // of all pools together
  }
#endif
  return peak;
}

}  // namespace settrain
