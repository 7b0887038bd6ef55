// An open file whose bytes are read at any place, with its name in every error.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "src/core/files.h"

namespace settrain {

class InputFile {
 public:
  /// Throws RunError where it cannot be read, or is no regular file.
  explicit InputFile(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  uint64_t size() const { return size_; }              // bytes, when it was opened
  const std::string& place() const { return place_; }  // "'FILE'"

  /// Reads `size` bytes at `offset`. Throws RunError where the file ends before them, or cannot be read.
  void read(void* target, uint64_t size, uint64_t offset) const;

  /// Throws RunError "'FILE': WHAT".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::filesystem::path path_;
  std::string place_;
  Descriptor descriptor_;
  uint64_t size_ = 0;
};

}  // namespace settrain
