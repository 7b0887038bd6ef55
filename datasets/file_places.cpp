#include "datasets/file_places.h"

#include <algorithm>
#include <functional>

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

FilePlaces::FilePlaces(const FileTable& files, int64_t begin, int64_t end)
    : files_(files), normal_root_((files.root() / "").lexically_normal().string()) {
  places_.reserve(static_cast<size_t>(end - begin));
  std::string room;
  for (int64_t i = begin; i < end; ++i) places_.emplace_back(hash_of(normal(files.name(i), room)), i);
  std::sort(places_.begin(), places_.end());
}

// The path from the root where it lies there; a view of `name`, or of `room`.
std::string_view FilePlaces::normal(std::string_view name, std::string& room) const {
  if (is_normal(name)) return name;
  room = (files_.root() / name).lexically_normal().string();
  if (normal_root_ == ".") return room;
  if (room.starts_with(normal_root_)) return std::string_view(room).substr(normal_root_.size());
  return room.insert(0, "//");  // outside of the root: unlike any path from it
}

std::optional<int64_t> FilePlaces::find(std::string_view name) const {
  std::string room, other_room;
  const std::string_view wanted = normal(name, room);
  const uint64_t hash = hash_of(wanted);
  auto place = std::lower_bound(places_.begin(), places_.end(), std::pair(hash, int64_t{0}));
  for (; place != places_.end() && place->first == hash; ++place) {
    if (normal(files_.name(place->second), other_room) == wanted) return place->second;
  }
  return std::nullopt;
}

}  // namespace settrain
