#include "src/inference/image_groups.h"

#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <unordered_map>

#include "src/core/error.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// One way to write each path.
std::string key_of(const fs::path& file) {
  return fs::absolute(file).lexically_normal().string();
}

using GroupNames = std::unordered_map<std::string, std::string>;  // by the image's key

GroupNames read_groups(const fs::path& file) {
  std::ifstream lines(file);
  if (!lines) throw DataError(fmt::format("cannot read the groups '{}'", file.string()));
  GroupNames groups;
  int64_t number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty() || (number == 1 && line == "image,group")) continue;
    const size_t comma = line.rfind(',');
    if (comma == std::string::npos || comma == 0 || comma + 1 == line.size()) {
      throw DataError(fmt::format("{}:{}: expected 'image,group'", file.string(), number));
    }
    const std::string image = line.substr(0, comma), group = line.substr(comma + 1);
    const auto [found, is_new] = groups.emplace(key_of(file.parent_path() / image), group);
    if (!is_new && found->second != group) {
      throw DataError(fmt::format("{}:{}: '{}' is in another group already", file.string(), number, image));
    }
  }
  return groups;
}

}  // namespace

ImageGroups image_groups(const std::string& rule, const FileTable& images) {
  const bool by_folder = rule == "folder";
  const GroupNames listed = by_folder ? GroupNames{} : read_groups(rule);
  ImageGroups groups;
  std::unordered_map<std::string, int64_t> numbers;
  for (int64_t i = 0; i < images.size(); ++i) {
    const fs::path file = images.path(i);
    std::string name;
    if (by_folder) {
      name = file.has_parent_path() ? file.parent_path().string() : ".";
    } else if (const auto found = listed.find(key_of(file)); found != listed.end()) {
      name = found->second;
    } else {
      throw DataError(fmt::format("'{}' is in no group of '{}'", file.string(), rule));
    }
    const auto [found, is_new] = numbers.emplace(name, std::ssize(groups.names));
    if (is_new) groups.names.push_back(name);
    groups.group_of.push_back(found->second);
  }
  return groups;
}

}  // namespace settrain
