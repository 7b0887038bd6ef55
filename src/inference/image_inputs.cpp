#include "src/inference/image_inputs.h"

#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <unordered_map>
#include <unordered_set>

#include "datasets/find_images.h"
#include "datasets/readers.h"
#include "datasets/text_lines.h"
#include "src/core/error.h"
#include "src/core/interrupt.h"
#include "src/core/log.h"
#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

std::string not_an_input(const std::string& input, const char* what) {
  return fmt::format("'{}' is {}: expected an image ({}), a folder, a text file that lists images, or -", input, what,
                     kImageEndings);
}

void add_folder(const fs::path& folder, FileTable& files) {
  FileTable found(folder);
  find_images("", found, is_picture);
  if (found.size() == 0) {
    std::string unread;
    for (const std::string& text : unread_texts(found.unread())) unread += ". " + text;
    throw DataError(fmt::format("no {} file in '{}' or the folders in it{}", kImageEndings, folder.string(), unread));
  }
  // A photograph without an ending is no picture by its name, and would be missed in the answers.
  if (found.unread().endings.contains("")) {
    for (const std::string& text : unread_texts(found.unread())) log::info("[predict] " + text);
  }
  for (int64_t i = 0; i < found.size(); ++i) files.add(found.path(i).native());
}

// Reads the next line that is not empty, without a byte order mark, and without blanks and a carriage return at its
// end, as lists of images are read. `number` counts lines from 1.
bool next_line(std::istream& lines, int64_t& number, std::string& line) {
  while (std::getline(lines, line)) {
    if (++number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, std::strlen(kByteOrderMark));
    line.erase(line.find_last_not_of(" \t\r") + 1);
    if (!line.empty()) return true;
  }
  return false;
}

void add_list(std::istream& lines, const fs::path& folder, const std::string& name, FileTable& files) {
  const int64_t before = files.size();
  int64_t number = 0;
  for (std::string line; next_line(lines, number, line);) {
    throw_if_interrupted();
    if (line.find('\0') != std::string::npos) {
      throw DataError(not_an_input(name, "neither an image nor text"));
    }
    files.add((folder / line).native());
  }
  if (files.size() == before) throw DataError(fmt::format("the list '{}' names no image", name));
}

void add_list_file(const std::string& input, FileTable& files) {
  std::ifstream lines(input, std::ios::binary);
  if (!fs::exists(input)) throw DataError(not_an_input(input, "not there") + shell_hint(input));
  if (!lines) throw DataError(fmt::format("cannot read the list '{}'", input));
  add_list(lines, fs::path(input).parent_path(), input, files);
}

// The same text for all paths of a file.
std::string key_of(const fs::path& file) {
  return fs::absolute(file).lexically_normal().string();
}

using GroupNames = std::unordered_map<std::string, std::string>;  // by the image's key, or its name without the ending

GroupNames read_groups(const fs::path& file) {
  if (fs::is_directory(file)) {
    throw DataError(
        fmt::format("--group {}: a folder; write --group folder, where each folder is a group, or name a CSV "
                    "file",
                    file.string()));
  }
  std::ifstream lines(file);
  if (!lines) throw DataError(fmt::format("cannot read the groups '{}'", file.string()));
  GroupNames groups;
  int64_t number = 0;
  for (std::string line; next_line(lines, number, line);) {
    if (number == 1 && line == "image,group") continue;
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

// The observations of Pl@ntNet-300K's metadata; empty for an image whose record has none.
GroupNames read_observations(const fs::path& file) {
  GroupNames groups;
  read_image_records(file, [&](const ImageRecord& record) {
    const auto [known, is_new] = groups.emplace(record.image, record.observation);
    if (!is_new && known->second != record.observation) {
      throw DataError(fmt::format("'{}': the image {} has two observations, {} and {}", file.string(),
                                  in_quotes(record.image), in_quotes(known->second), in_quotes(record.observation)));
    }
  });
  return groups;
}

}  // namespace

FileTable image_inputs(const std::vector<std::string>& inputs, std::istream& standard_input) {
  FileTable files;
  for (const std::string& input : inputs) {
    std::error_code error;
    if (input == "-") {
      add_list(standard_input, {}, "-", files);
    } else if (fs::is_directory(input, error)) {
      add_folder(input, files);
    } else if (is_picture(input)) {
      files.add(input);
    } else {
      add_list_file(input, files);
    }
  }
  files.shrink_to_fit();
  return files;
}

FileTable without_repeats(const FileTable& images) {
  FileTable distinct(images.root());
  std::unordered_set<std::string> seen;
  for (int64_t i = 0; i < images.size(); ++i) {
    if (seen.insert(key_of(images.path(i))).second) distinct.add(images.name(i));
  }
  return distinct;
}

ImageGroups image_groups(const std::string& rule, const FileTable& images) {
  const bool by_folder = rule == "folder";
  const bool by_observation = rule.ends_with(".json");
  const GroupNames listed = by_folder ? GroupNames{} : by_observation ? read_observations(rule) : read_groups(rule);
  ImageGroups groups;
  std::unordered_map<std::string, int64_t> numbers;
  for (int64_t i = 0; i < images.size(); ++i) {
    const fs::path file = images.path(i);
    std::string name;
    if (by_folder) {
      const fs::path folder = file.parent_path().lexically_normal();
      name = folder.empty() ? "." : folder.string();
    } else if (const auto found = listed.find(by_observation ? file.stem().string() : key_of(file));
               found != listed.end()) {
      name = found->second;
      if (name.empty()) {
        throw DataError(fmt::format("'{}': the record of the image {} ('{}') has no obs_id, which names its group",
                                    rule, in_quotes(found->first), file.string()));
      }
    } else {
      throw DataError(fmt::format("'{}' is in no group of '{}'", file.string(), rule));
    }
    const auto [found, is_new] = numbers.emplace(name, std::ssize(groups.names));
    if (is_new) groups.names.push_back(name);
    groups.group_of.push_back(found->second);
  }
  if (!by_observation && std::ssize(listed) > images.size()) {
    log::warning(fmt::format("[predict] {} of the {} images in '{}' are not among those to answer to",
                             std::ssize(listed) - images.size(), listed.size(), rule));
  }
  return groups;
}

}  // namespace settrain
