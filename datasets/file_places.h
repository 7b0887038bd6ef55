// Where in a table of files a file is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datasets/file_table.h"

namespace settrain {

/// Finds files by their paths, however these are written ("a/../b.png" is "b.png"): 16 bytes a file.
class FilePlaces {
 public:
  /// Of the files from `begin` up to `end` of `files`, which must outlive this and not change.
  FilePlaces(const FileTable& files, int64_t begin, int64_t end);

  /// The first of them that is the same file as `other`, a place in the same table or a name from its root.
  std::optional<int64_t> find(int64_t other) const { return find(files_.name(other)); }
  std::optional<int64_t> find(std::string_view name) const;

 private:
  std::string_view normal(std::string_view name, std::string& room) const;

  const FileTable& files_;
  std::string normal_root_;                           // with a slash at its end
  std::vector<std::pair<uint64_t, int64_t>> places_;  // hash of a path, place in the table; sorted
};

}  // namespace settrain
