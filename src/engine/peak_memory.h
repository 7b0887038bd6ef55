// The most memory that the program has used.
#pragma once

#include <cstdint>
#include <string>

namespace settrain {

struct PeakMemory {
  uint64_t host = 0;    // bytes of resident memory
  uint64_t device = 0;  // bytes that ATen's allocator held on the GPUs; 0 without one
};

/// Of this process, since it started.
PeakMemory peak_memory();

/// "1.2 GiB", or "1.2 GiB, and 3.4 GiB on the GPU".
std::string format_memory(const PeakMemory& memory);

}  // namespace settrain
