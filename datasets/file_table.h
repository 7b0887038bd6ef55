// The names of many files, in little memory, and a lookup by path.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace settrain {

/// Files that a search for images passed over, for messages.
struct UnreadFiles {
  int64_t count = 0;                       // files of another kind than find_images() takes
  std::map<std::string, int64_t> endings;  // how many of them have each ending, in lower case with its dot; "" for none
  std::filesystem::path first;             // the least of their paths
  int64_t misplaced = 0;                   // images that lie beside the class folders
  std::filesystem::path first_misplaced;   // the least of their paths

  void add(const std::filesystem::path& file);
  void add_misplaced(const std::filesystem::path& image);
};

/// Names of files below one folder, and the files' sizes. A file takes the characters of its name and 16 bytes, where a
/// std::filesystem::path takes several hundred.
class FileTable {
 public:
  explicit FileTable(std::filesystem::path root = {}) : root_(std::move(root)) {}

  /// Appends a file: its path from the root, or an absolute one. `size`: bytes, where it is known already.
  void add(std::string_view name, int64_t size = kUnmeasured);
  /// Allocates memory for more files, or gives back what was allocated in advance.
  void reserve(int64_t more_files, int64_t more_characters);
  void shrink_to_fit();

  const std::filesystem::path& root() const { return root_; }
  int64_t size() const { return static_cast<int64_t>(ends_.size()); }
  /// As it was added. Throws std::out_of_range; the view is good until the next add().
  std::string_view name(int64_t i) const;
  /// The name as seen from the root, also where an absolute path was added: the same wherever the data lie.
  std::string name_from_root(int64_t i) const;
  /// The root with the name behind it.
  std::filesystem::path path(int64_t i) const;
  /// The size of the file in bytes; -1 where measure() has not seen it.
  int64_t file_size(int64_t i) const { return sizes_.at(static_cast<size_t>(i)); }

  /// Asks the system for the size of every file that has none yet. Stops at the first that is no regular file, and
  /// returns its place.
  std::optional<int64_t> measure();

  /// The files that the search for these files passed over.
  UnreadFiles& unread() { return unread_; }
  const UnreadFiles& unread() const { return unread_; }

  /// Memory that the table holds, in bytes.
  int64_t bytes() const;

  static constexpr int64_t kUnmeasured = -1;

 private:
  std::filesystem::path root_;
  std::string characters_;      // all names, one after the other
  std::vector<uint64_t> ends_;  // where each name ends in `characters_`
  std::vector<int64_t> sizes_;
  int64_t measured_ = 0;  // measure() has done the files before this one
  UnreadFiles unread_;
};

/// The ending of a file's name in lower case, with its dot: ".jpg". Empty for "README" and for ".hidden".
std::string lower_ending(std::string_view file);

/// Finds files by their paths, however these are written ("a/../b.png" is "b.png"): 16 bytes a file.
class FilePlaces {
 public:
  /// Indexes the files from `begin` up to `end` of `files`, which must outlive this object and not change.
  FilePlaces(const FileTable& files, int64_t begin, int64_t end);

  /// The first of these files that is the same as `other`, a place in the same table or a name from its root.
  std::optional<int64_t> find(int64_t other) const { return find(files_.name(other)); }
  std::optional<int64_t> find(std::string_view name) const;

 private:
  std::string_view normal(std::string_view name, std::string& buffer) const;

  const FileTable& files_;
  std::filesystem::path root_;                        // absolute
  std::string normal_root_;                           // with a slash at its end
  std::vector<std::pair<uint64_t, int64_t>> places_;  // hash of a path, place in the table; sorted
};

}  // namespace settrain
