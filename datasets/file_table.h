// The names of many files, in little memory.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace settrain {

/// Names of files below one folder, and the files' sizes. A file takes the characters of its name and 16 bytes, where a
/// std::filesystem::path takes several hundred.
class FileTable {
 public:
  explicit FileTable(std::filesystem::path root = {}) : root_(std::move(root)) {}

  /// Appends a file: its path from the root, or an absolute one. `size`: bytes, where it is known already.
  void add(std::string_view name, int64_t size = kUnmeasured);
  /// Takes memory for more files, or gives back what was taken in advance.
  void reserve(int64_t more_files, int64_t more_characters);
  void shrink_to_fit();

  const std::filesystem::path& root() const { return root_; }
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// As it was added. Throws std::out_of_range; the view is good until the next add().
  std::string_view name(int64_t i) const;
  /// The root with the name behind it.
  std::filesystem::path path(int64_t i) const;
  /// Of the file, in bytes; -1 where measure() has not seen it.
  int64_t file_size(int64_t i) const { return sizes_.at(static_cast<size_t>(i)); }

  /// Asks the system for the size of every file that has none yet, once a file. The first that is no regular file ends
  /// it, and is returned.
  std::optional<int64_t> measure();

  /// Memory that the table holds.
  int64_t bytes() const;

  static constexpr int64_t kUnmeasured = -1;

 private:
  std::filesystem::path root_;
  std::string characters_;      // the names, one behind the other
  std::vector<uint64_t> ends_;  // where in them each one ends
  std::vector<int64_t> sizes_;
  int64_t measured_ = 0;  // files that measure() is done with
};

}  // namespace settrain
