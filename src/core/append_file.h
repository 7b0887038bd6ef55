// A log that only grows, record by record.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "src/core/descriptor.h"

namespace settrain {

/// A file that is written at its end. Throws RunError, naming the file, where the system refuses.
class AppendFile {
 public:
  /// Opens `file`, making it where it is missing.
  explicit AppendFile(std::filesystem::path file);

  /// Adds `record` whole or, where that fails, not at all; nothing stays in a buffer of this process.
  void append(std::string_view record);

  /// Waits until all is on the disk.
  void sync();

  /// Bytes of the file.
  uint64_t size() const { return size_; }

  /// Cuts the file back. Throws RunError where it is shorter than that.
  void truncate_to(uint64_t size);

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
  Descriptor file_;
  uint64_t size_ = 0;
};

}  // namespace settrain
