#include "src/engine/peak_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include "src/core/human.h"

#ifdef SETTRAIN_HAS_CUDA
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace settrain {

PeakMemory peak_memory() {
  PeakMemory peak;
  // Not getrusage(), which starts from what the parent process had used.
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("VmHWM:")) peak.host = std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  }
#ifdef SETTRAIN_HAS_CUDA
  namespace allocator = c10::cuda::CUDACachingAllocator;
  for (c10::DeviceIndex i = 0; at::hasCUDA() && allocator::get()->initialized() && i < c10::cuda::device_count(); ++i) {
    const auto& held = allocator::getDeviceStats(i).reserved_bytes;
    peak.device += static_cast<uint64_t>(held[0].peak);  // of all pools together
  }
#endif
  return peak;
}

std::string format_memory(const PeakMemory& memory) {
  const std::string host = format_bytes(memory.host);
  return memory.device == 0 ? host : host + ", and " + format_bytes(memory.device) + " on the GPU";
}

}  // namespace settrain
