#include "datasets/text_lines.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

#include "datasets/file_bytes.h"
#include "src/core/error.h"

namespace settrain {

TextLines::TextLines(std::filesystem::path file) : file_(std::move(file)), stream_(file_) {
  if (!stream_) throw data_file_error("open", file_);
}

bool TextLines::next() {
  if (!std::getline(stream_, line_)) {
    if (stream_.bad()) throw data_file_error("read", file_);
    return false;
  }
  ++number_;
  if (line_.find('\0') != std::string::npos) {
    const bool is_utf16 = number_ == 1 && (line_.starts_with("\xFF\xFE") || line_.starts_with("\xFE\xFF"));
    fail(is_utf16 ? "the file is UTF-16 text; save it as UTF-8" : "a byte 0: the file is no UTF-8 text");
  }
  if (number_ == 1 && line_.starts_with(kByteOrderMark)) line_.erase(0, std::string_view(kByteOrderMark).size());
  return true;
}

std::string TextLines::place() const {
  return fmt::format("{}:{}", file_.string(), number_);
}

void TextLines::fail(const std::string& what) const {
  throw DataError(fmt::format("{}: {}", place(), what));
}

}  // namespace settrain
