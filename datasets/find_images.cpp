#include "datasets/find_images.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <numeric>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// The order of std::filesystem::path: folder by folder, so a slash comes before every other character.
bool path_less(std::string_view a, std::string_view b) {
  const auto rank = [](char c) { return c == '/' ? 0 : static_cast<unsigned char>(c); };
  return std::lexicographical_compare(a.begin(), a.end(), b.begin(), b.end(),
                                      [&](char x, char y) { return rank(x) < rank(y); });
}

}  // namespace

bool is_image(const fs::path& file) {
  static constexpr std::array kEndings = {".jpg", ".jpeg", ".jfif", ".png", ".bmp", ".webp", ".tif", ".tiff"};
  std::string ending = file.extension().string();
  std::transform(ending.begin(), ending.end(), ending.begin(), [](unsigned char c) { return std::tolower(c); });
  return std::find(kEndings.begin(), kEndings.end(), ending) != kEndings.end();
}

void find_images(const fs::path& folder, FileTable& files) {
  const fs::path start = files.root() / folder;
  const size_t above = start.string().size() - folder.string().size();
  FileTable found;
  try {
    for (auto entry = fs::recursive_directory_iterator(start); entry != fs::recursive_directory_iterator(); ++entry) {
      const bool hidden = entry->path().filename().string().starts_with('.');
      if (hidden) entry.disable_recursion_pending();
      if (hidden || !is_image(entry->path()) || entry->is_directory()) continue;  // a link to nothing is not left out
      std::string_view name = entry->path().native();
      name.remove_prefix(above);
      name.remove_prefix(std::min(name.find_first_not_of('/'), name.size()));
      found.add(name);
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format("cannot list the images of '{}': {}", start.string(), error.code().message()));
  }
  std::vector<int64_t> order(static_cast<size_t>(found.size()));
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return path_less(found.name(a), found.name(b)); });
  for (const int64_t i : order) files.add(found.name(i));
}

FileTable unlabelled_images(const fs::path& root) {
  FileTable files(root);
  find_images("", files);
  if (files.size() == 0) {
    throw DataError(fmt::format("no {} file in '{}' or the folders in it", kImageEndings, root.string()));
  }
  measure_found(files);
  return files;
}

std::vector<std::string> folders_in(const fs::path& folder, const std::string& advice) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && !name.starts_with('.')) names.push_back(name);
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(
        fmt::format("cannot list the classes in '{}': {}; {}", folder.string(), error.code().message(), advice));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> unknown_folders(const fs::path& folder, const std::vector<std::string>& classes) {
  const std::unordered_set<std::string> known(classes.begin(), classes.end());
  std::vector<std::string> found = folders_in(folder, "expected a folder for every class");
  std::erase_if(found, [&](const std::string& name) { return known.contains(name); });
  return found;
}

std::vector<int64_t> add_class_images(const std::string& split, const std::vector<std::string>& classes,
                                      FileTable& files) {
  const int64_t first = files.size();
  std::vector<int64_t> labels;
  for (size_t c = 0; c < classes.size(); ++c) {
    const fs::path folder = fs::path(split) / classes[c];
    if (!fs::is_directory(files.root() / folder)) continue;
    find_images(folder, files);
    labels.resize(static_cast<size_t>(files.size() - first), static_cast<int64_t>(c));
  }
  return labels;
}

void check_every_class(const std::vector<int64_t>& labels, const std::vector<std::string>& classes,
                       const fs::path& folder, bool may_lack) {
  if (labels.empty()) throw DataError(fmt::format("no {} file in the folders of '{}'", kImageEndings, folder.string()));
  std::vector<bool> has_image(classes.size());
  for (const int64_t label : labels) has_image.at(static_cast<size_t>(label)) = true;
  const auto without = std::count(has_image.begin(), has_image.end(), false);
  if (without == 0) return;
  const auto first = std::find(has_image.begin(), has_image.end(), false) - has_image.begin();
  const std::string what = fmt::format("{} of {} classes have no image in '{}'; the first is {}", without,
                                       classes.size(), folder.string(), classes[static_cast<size_t>(first)]);
  if (!may_lack) throw DataError(what);
  log::warning("[data] " + what);
}

std::vector<int64_t> read_class_images(const std::string& split, const std::vector<std::string>& classes, bool may_lack,
                                       FileTable& files) {
  const fs::path folder = files.root() / split;
  for (const std::string& name : unknown_folders(folder, classes)) {
    throw DataError(fmt::format("'{}' is a class that the training split has not{}", (folder / name).string(),
                                did_you_mean(name, classes)));
  }
  std::vector<int64_t> labels = add_class_images(split, classes, files);
  check_every_class(labels, classes, folder, may_lack);
  return labels;
}

void measure_found(FileTable& files) {
  if (const auto gone = files.measure()) {
    throw DataError(
        fmt::format("'{}' is a link to nothing, or went away while its folder was read", files.path(*gone).string()));
  }
  files.shrink_to_fit();
}

}  // namespace settrain
