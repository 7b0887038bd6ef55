#include "src/data_tools/split_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "datasets/find_images.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/permutation.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// Names that image_list.h and class_table.h would read otherwise than they were written.
void check_name(const fs::path& path, const std::string& name, bool is_class) {
  const bool blank_end = !name.empty() && (std::string_view(" \t").find(name.front()) != std::string_view::npos ||
                                           std::string_view(" \t").find(name.back()) != std::string_view::npos);
  if (name.find_first_of("\n\r") == std::string::npos && !(is_class && blank_end)) return;
  throw DataError(fmt::format("'{}': a list of images cannot hold this name: rename it, without {}", path.string(),
                              is_class ? "line breaks, and blanks at the ends" : "line breaks"));
}

// A number that a class' name alone decides. Two classes may share one, and then an order.
uint32_t number_of(const std::string& name) {
  return static_cast<uint32_t>(std::stoul(sha256(name).substr(0, 8), nullptr, 16));
}

ClassSplit split_class(std::string name, const std::vector<fs::path>& files, const SplitRule& rule, uint64_t seed) {
  ClassSplit split{std::move(name), {}, {}, {}};
  const auto n = static_cast<int64_t>(files.size());
  const SplitSizes sizes = rule.sizes(n);
  if (sizes == SplitSizes{}) {
    split.train = files;
    return split;
  }
  const std::vector<int64_t> order = permutation(n, seed, Stream::kDataSplit, number_of(split.name));
  for (int64_t i = 0; i < n; ++i) {
    auto& part = i < sizes.val ? split.val : i < sizes.val + sizes.test ? split.test : split.train;
    part.push_back(files[static_cast<size_t>(order[static_cast<size_t>(i)])]);
  }
  for (auto* part : {&split.train, &split.val, &split.test}) std::sort(part->begin(), part->end());
  return split;
}

std::vector<fs::path> images_of(const fs::path& folder, const fs::path& root) {
  FileTable found(root);
  find_images(folder, found);
  std::vector<fs::path> files;
  for (int64_t i = 0; i < found.size(); ++i) {
    check_name(found.path(i), found.path(i).string(), false);
    files.emplace_back(found.name(i));
  }
  return files;
}

struct Content {
  std::vector<std::string> classes;
  int64_t images = 0;  // beside the classes
};

Content content_of(const fs::path& folder) {
  Content content;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with('.')) continue;
      if (entry.is_directory()) {
        check_name(entry.path(), name, true);
        content.classes.push_back(name);
      } else if (entry.is_regular_file() && is_image(entry.path())) {
        ++content.images;
      }
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format("cannot list the classes in '{}': {}", folder.string(), error.code().message()));
  }
  std::sort(content.classes.begin(), content.classes.end());
  return content;
}

}  // namespace

FolderSplit split_folder(const fs::path& folder, const SplitRule& rule, uint64_t seed) {
  const Content content = content_of(folder);
  if (content.classes.empty()) {
    throw DataError(fmt::format("'{}' holds no folders: expected one for every class", folder.string()));
  }
  const std::set<std::string> parts{"train", "val", "valid", "validation", "test"};
  if (std::includes(parts.begin(), parts.end(), content.classes.begin(), content.classes.end())) {
    throw DataError(
        fmt::format("'{}' holds {}, which are no classes: this data set is divided already (data.name: image_folder "
                    "reads its train/, val/ and test/); name a folder of classes",
                    folder.string(), fmt::join(content.classes, ", ")));
  }
  FolderSplit split;
  split.outside = content.images;
  for (const std::string& name : content.classes) {
    ClassSplit divided = split_class(name, images_of(name, folder), rule, seed);
    (divided.val.empty() ? split.left_out : split.classes).push_back(std::move(divided));
  }
  if (split.classes.size() < 2) {
    throw DataError(
        fmt::format("{} of the {} classes in '{}' are large enough, expected two at least: a class needs "
                    "more than {} images ({}), and one left to train on",
                    split.classes.size(), content.classes.size(), folder.string(), rule.min_images, kImageEndings));
  }
  return split;
}

}  // namespace settrain
