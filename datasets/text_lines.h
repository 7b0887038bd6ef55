// Text files that are read line by line.
#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

namespace settrain {

/// UTF-8's byte order mark. Some editors write it in front of a text file; it is not part of the first line.
inline constexpr const char* kByteOrderMark = "\xEF\xBB\xBF";

/// The lines of a text file, without a byte order mark. Throws DataError where the file cannot be opened.
class TextLines {
 public:
  explicit TextLines(std::filesystem::path file);

  /// Goes to the next line; false behind the last. Throws DataError where the file cannot be read, and at a line that
  /// holds a byte 0: UTF-16, as some programs write it, or no text at all.
  bool next();

  const std::string& line() const { return line_; }
  int64_t number() const { return number_; }  // of the line, from 1
  std::string place() const;                  // FILE:LINE

  /// Throws DataError "FILE:LINE: what".
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::filesystem::path file_;
  std::ifstream stream_;
  std::string line_{};
  int64_t number_ = 0;
};

}  // namespace settrain
