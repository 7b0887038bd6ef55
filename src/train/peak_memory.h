// The most memory that the program has used.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <string>

namespace settrain {

struct PeakMemory {
  uint64_t host = 0;    // bytes of resident memory
  uint64_t device = 0;  // bytes that ATen's allocator held on the GPUs; 0 without one
};

/// The peak of this process, since it started or the latest ExtraMemory was made.
PeakMemory peak_memory();

/// The most memory that is used on top of what was in use when this was made: by tensors on the GPUs, and resident on
/// the host.
class ExtraMemory {
 public:
  /// Starts the peaks anew.
  ExtraMemory();

  /// Nothing where the system does not let a process start its peak anew.
  std::optional<PeakMemory> peak() const;

 private:
  std::optional<PeakMemory> before_;
};

/// Bytes of a device that can still be had; of the host's, before it begins to swap. 0 where the system does not say.
uint64_t available_memory(c10::Device device);

/// "1.2 GiB", or "1.2 GiB, and 3.4 GiB on the GPU".
std::string format_memory(const PeakMemory& memory);

}  // namespace settrain
