// A file in memory, for functions that read from a path.
#pragma once

#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <system_error>

#include "src/core/files.h"

namespace settrain::test {

/// Holds the bytes as a file without a name; its path is good in this process while the object lives.
class MemoryFile {
 public:
  explicit MemoryFile(std::span<const uint8_t> bytes) : file_(::memfd_create("settrain-test", MFD_CLOEXEC)) {
    if (!file_.is_open() || !write_all(file_, bytes.data(), bytes.size())) {
      throw std::system_error(errno, std::generic_category(), "a file in memory");
    }
  }

  std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(file_.get()); }

 private:
  Descriptor file_;
};

}  // namespace settrain::test
