#include "src/train/peak_memory.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "src/core/text.h"

#ifdef SETTRAIN_HAS_CUDA
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#endif

namespace settrain {
namespace {

// The bytes of a line such as "VmHWM:     1234 kB"; 0 where no line of the file has the name.
uint64_t bytes_named(const std::string& name, const char* file) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with(name + ":")) return std::strtoull(line.c_str() + name.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

// A sum over the GPUs.
template <class Bytes>
uint64_t on_devices([[maybe_unused]] Bytes bytes) {
  uint64_t sum = 0;
#ifdef SETTRAIN_HAS_CUDA
  namespace allocator = c10::cuda::CUDACachingAllocator;
  for (c10::DeviceIndex i = 0; at::hasCUDA() && allocator::get()->initialized() && i < c10::cuda::device_count(); ++i) {
    sum += static_cast<uint64_t>(bytes(i, allocator::getDeviceStats(i)));
  }
#endif
  return sum;
}

// The index of the sum over all pools in a count of the allocator.
constexpr size_t kAllPools = 0;

}  // namespace

PeakMemory peak_memory() {
  // Not getrusage(), which starts from what the parent process had used.
  return {bytes_named("VmHWM", "/proc/self/status"),
          on_devices([](auto, const auto& stats) { return stats.reserved_bytes[kAllPools].peak; })};
}

ExtraMemory::ExtraMemory() {
  std::ofstream reset("/proc/self/clear_refs");
  if (!(reset << "5" << std::flush)) return;
  before_ = {bytes_named("VmRSS", "/proc/self/status"), on_devices([]([[maybe_unused]] auto device, const auto& stats) {
#ifdef SETTRAIN_HAS_CUDA
               c10::cuda::CUDACachingAllocator::resetPeakStats(device);
#endif
               return stats.allocated_bytes[kAllPools].current;
             })};
}

std::optional<PeakMemory> ExtraMemory::peak() const {
  if (!before_) return {};
  const PeakMemory most{bytes_named("VmHWM", "/proc/self/status"),
                        on_devices([](auto, const auto& stats) { return stats.allocated_bytes[kAllPools].peak; })};
  return PeakMemory{most.host - std::min(most.host, before_->host), most.device - before_->device};
}

uint64_t available_memory([[maybe_unused]] c10::Device device) {
#ifdef SETTRAIN_HAS_CUDA
  if (device.is_cuda()) return c10::cuda::CUDACachingAllocator::get()->getMemoryInfo(device.index()).first;
#endif
  return bytes_named("MemAvailable", "/proc/meminfo");
}

std::string format_memory(const PeakMemory& memory) {
  const std::string host = format_bytes(memory.host);
  return memory.device == 0 ? host : host + ", and " + format_bytes(memory.device) + " on the GPU";
}

}  // namespace settrain
