// An open file of the operating system, closed when it goes out of scope.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <utility>

#include "src/core/error.h"

namespace settrain {

/// Owns a file descriptor; -1 stands for none.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int value) : value_(value) {}
  Descriptor(Descriptor&& other) noexcept : value_(std::exchange(other.value_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Descriptor() { close(); }

  int get() const { return value_; }
  bool is_open() const { return value_ >= 0; }
  void close();

 private:
  int value_ = -1;
};

/// Writes all of `size` bytes, however many calls that takes. False, with errno set, where the system refuses.
bool write_all(const Descriptor& file, const void* data, size_t size);

/// "cannot write 'FILE': No space left on device; free some space ...", for an errno `code`; `action` is "write",
/// "open", ...
RunError file_error(std::string_view action, const std::filesystem::path& file, int code);

}  // namespace settrain
