#include "src/train/peak_memory.h"

#include <ATen/Context.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "src/core/text.h"

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
uint64_t on_devices(const Bytes& bytes) {
  uint64_t sum = 0;
  if (!at::hasCUDA()) return sum;
  c10::DeviceAllocator* const allocator = c10::getDeviceAllocator(at::kCUDA);
  for (c10::DeviceIndex i = 0; allocator->initialized() && i < at::detail::getCUDAHooks().deviceCount(); ++i) {
    sum += static_cast<uint64_t>(bytes(*allocator, i));
  }
  return sum;
}

// The index of the sum over all pools in a count of the allocator.
constexpr size_t kAllPools = 0;

}  // namespace

PeakMemory peak_memory() {
  // Not getrusage(), which starts from what the parent process had used.
  return {bytes_named("VmHWM", "/proc/self/status"),
          on_devices([](auto& gpu, auto i) { return gpu.getDeviceStats(i).reserved_bytes[kAllPools].peak; })};
}

ExtraMemory::ExtraMemory() {
  std::ofstream reset("/proc/self/clear_refs");
  if (!(reset << "5" << std::flush)) return;
  before_ = {bytes_named("VmRSS", "/proc/self/status"), on_devices([](auto& gpu, auto i) {
               gpu.resetPeakStats(i);
               return gpu.getDeviceStats(i).allocated_bytes[kAllPools].current;
             })};
}

std::optional<PeakMemory> ExtraMemory::peak() const {
  if (!before_) return {};
  const PeakMemory most{bytes_named("VmHWM", "/proc/self/status"), on_devices([](auto& gpu, auto i) {
                          return gpu.getDeviceStats(i).allocated_bytes[kAllPools].peak;
                        })};
  return PeakMemory{most.host - std::min(most.host, before_->host), most.device - before_->device};
}

uint64_t available_memory(c10::Device device) {
  if (device.is_cuda()) return c10::getDeviceAllocator(device.type())->getMemoryInfo(device.index()).first;
  return bytes_named("MemAvailable", "/proc/meminfo");
}

std::string format_memory(const PeakMemory& memory) {
  const std::string host = format_bytes(memory.host);
  return memory.device == 0 ? host : host + ", and " + format_bytes(memory.device) + " on the GPU";
}

}  // namespace settrain
