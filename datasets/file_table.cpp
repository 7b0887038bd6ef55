#include "datasets/file_table.h"

#include <sys/stat.h>

namespace settrain {

void FileTable::add(std::string_view name, int64_t size) {
  characters_ += name;
  ends_.push_back(characters_.size());
  sizes_.push_back(size);
}

void FileTable::reserve(int64_t more_files, int64_t more_characters) {
  ends_.reserve(ends_.size() + static_cast<size_t>(more_files));
  sizes_.reserve(sizes_.size() + static_cast<size_t>(more_files));
  characters_.reserve(characters_.size() + static_cast<size_t>(more_characters));
}

void FileTable::shrink_to_fit() {
  characters_.shrink_to_fit();
  ends_.shrink_to_fit();
  sizes_.shrink_to_fit();
}

std::string_view FileTable::name(int64_t i) const {
  const auto at = static_cast<size_t>(i);
  const uint64_t end = ends_.at(at), begin = at == 0 ? 0 : ends_[at - 1];
  return std::string_view(characters_).substr(begin, end - begin);
}

std::filesystem::path FileTable::path(int64_t i) const {
  return root_ / name(i);
}

std::optional<int64_t> FileTable::measure() {
  // One text for all paths: a path object a file would cost more than the system's answer.
  const std::string folder = (root_ / "").string();
  std::string path;
  for (; measured_ < size(); ++measured_) {
    int64_t& size = sizes_[static_cast<size_t>(measured_)];
    if (size != kUnmeasured) continue;
    const std::string_view file = name(measured_);
    path.assign(file.starts_with('/') ? "" : folder).append(file);
    struct stat found;
    if (stat(path.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return measured_;
    size = found.st_size;
  }
  return std::nullopt;
}

int64_t FileTable::bytes() const {
  return static_cast<int64_t>(characters_.capacity() + ends_.capacity() * sizeof(ends_[0]) +
                              sizes_.capacity() * sizeof(sizes_[0]));
}

}  // namespace settrain
