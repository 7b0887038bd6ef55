#include "src/formats/pickle_input.h"

#include <algorithm>
#include <cstring>

#include "src/core/error.h"

namespace settrain {

std::string PickleInput::take_text(uint64_t size) {
  if (size > end_ - position()) fail("it ends within a text");
  std::string text(size, '\0');
  fill(text.data(), size);
  return text;
}

std::string PickleInput::take_line() {
  std::string line;
  for (char byte = take<char>(); byte != '\n'; byte = take<char>()) {
    if (line.size() == kLongestLine) fail("a line is longer than " + std::to_string(kLongestLine) + " bytes");
    line += byte;
  }
  return line;
}

void PickleInput::fail(const std::string& what) const {
  throw RunError(file_.place() + ", byte " + std::to_string(position()) + ": " + what);
}

void PickleInput::fill(void* target, uint64_t size) {
  constexpr uint64_t kAhead = 65'536;
  auto* out = static_cast<char*>(target);
  while (size > 0) {
    if (used_ == buffer_.size()) {
      if (next_ == end_) fail("it ends within a value; it may have been cut short: get it again");
      buffer_.resize(std::min(kAhead, end_ - next_));
      file_.read(buffer_.data(), buffer_.size(), next_);
      next_ += buffer_.size();
      used_ = 0;
    }
    const uint64_t count = std::min<uint64_t>(size, buffer_.size() - used_);
    std::memcpy(out, buffer_.data() + used_, count);
    used_ += count;
    out += count;
    size -= count;
  }
}

}  // namespace settrain
