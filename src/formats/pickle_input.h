// A part of a file, read byte by byte from its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "src/formats/input_file.h"

namespace settrain {

class PickleInput {
 public:
  static constexpr size_t kLongestLine = 1000;  // bytes

  /// The `size` bytes of `file` from `begin` on.
  PickleInput(const InputFile& file, uint64_t begin, uint64_t size) : file_(file), next_(begin), end_(begin + size) {}

  /// The next bytes, as a little-endian integer. These throw RunError where the part ends before them.
  template <class Integer>
  Integer take() {
    Integer value;
    fill(&value, sizeof value);
    return value;
  }
  std::string take_text(uint64_t size);
  /// Up to the next line feed, which is taken too and left out.
  std::string take_line();

  uint64_t position() const { return next_ - (buffer_.size() - used_); }  // in the file, of the next byte

  /// Throws RunError "'FILE', byte N: WHAT".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  void fill(void* target, uint64_t size);

  const InputFile& file_;
  uint64_t next_, end_;       // of what is not in the buffer
  std::vector<char> buffer_;  // read ahead
  size_t used_ = 0;           // of it
};

}  // namespace settrain
