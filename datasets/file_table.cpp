#include "datasets/file_table.h"

#include <sys/stat.h>

#include <algorithm>
#include <functional>

#include "src/core/text.h"

namespace settrain {
namespace {

// Whether a relative path has no empty, "." or ".." part.
bool is_normal(std::string_view name) {
  for (size_t begin = 0; begin <= name.size();) {
    const size_t end = std::min(name.find('/', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (part.empty() || part == "." || part == "..") return false;
    begin = end + 1;
  }
  return true;
}

uint64_t hash_of(std::string_view text) {
  return std::hash<std::string_view>{}(text);
}

}  // namespace

std::string lower_ending(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);  // npos + 1 is 0
  const size_t dot = file.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  return lower_case(file.substr(dot));
}

void UnreadFiles::add(const std::filesystem::path& file) {
  if (++count == 1 || file.native() < first.native()) first = file;
  ++endings[lower_ending(file.native())];
}

void UnreadFiles::add_misplaced(const std::filesystem::path& image) {
  if (++misplaced == 1 || image.native() < first_misplaced.native()) first_misplaced = image;
}

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

std::string FileTable::name_from_root(int64_t i) const {
  const std::string_view as_added = name(i);
  if (!as_added.starts_with('/')) return std::string(as_added);
  const std::string relative = std::filesystem::path(as_added).lexically_relative(root_).string();
  return relative.empty() ? std::string(as_added) : relative;  // empty: the root is relative
}

std::filesystem::path FileTable::path(int64_t i) const {
  return root_ / name(i);
}

std::optional<int64_t> FileTable::measure() {
  // One string for all paths: a path object for each file would cost more than the system call.
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

FilePlaces::FilePlaces(const FileTable& files, int64_t begin, int64_t end)
    : files_(files),
      root_(std::filesystem::absolute(files.root().empty() ? "." : files.root())),
      normal_root_((root_ / "").lexically_normal().string()) {
  places_.reserve(static_cast<size_t>(end - begin));
  std::string buffer;
  for (int64_t i = begin; i < end; ++i) places_.emplace_back(hash_of(normal(files.name(i), buffer)), i);
  std::sort(places_.begin(), places_.end());
}

// The path from the root, for a file below it. The result is a view of `name` or of `buffer`.
std::string_view FilePlaces::normal(std::string_view name, std::string& buffer) const {
  if (is_normal(name)) return name;
  buffer = (root_ / name).lexically_normal().string();
  if (buffer.starts_with(normal_root_)) return std::string_view(buffer).substr(normal_root_.size());
  return buffer.insert(0, "//");  // outside of the root: differs from every path below it
}

std::optional<int64_t> FilePlaces::find(std::string_view name) const {
  std::string buffer, other_buffer;
  const std::string_view wanted = normal(name, buffer);
  const uint64_t hash = hash_of(wanted);
  auto place = std::lower_bound(places_.begin(), places_.end(), std::pair(hash, int64_t{0}));
  for (; place != places_.end() && place->first == hash; ++place) {
    if (normal(files_.name(place->second), other_buffer) == wanted) return place->second;
  }
  return std::nullopt;
}

}  // namespace settrain
