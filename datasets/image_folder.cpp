#include "datasets/image_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "datasets/class_table.h"
#include "datasets/find_images.h"
#include "datasets/image_files.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/log.h"
#include "src/core/suggest.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> folders_in(const fs::path& folder) {
  std::vector<std::string> names;
  try {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
      const std::string name = entry.path().filename().string();
      if (entry.is_directory() && !name.starts_with('.')) names.push_back(name);
    }
  } catch (const fs::filesystem_error& error) {
    throw DataError(fmt::format(
        "cannot list the classes in '{}': {}; data.root should hold train, val and test, each with a folder for every "
        "class",
        folder.string(), error.code().message()));
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The files of a split with their labels, added to `files`. `classes` are sorted.
Split read_split(const fs::path& root, const std::string& name, const std::vector<std::string>& classes,
                 std::vector<fs::path>& files) {
  Split split{name, nullptr, {}, {}};
  std::vector<std::string> without;
  for (const std::string& found : folders_in(root / name)) {
    if (std::binary_search(classes.begin(), classes.end(), found)) continue;
    const std::string near = nearest_name(found, classes);
    throw DataError(fmt::format("'{}' is a class that the training split has not{}", (root / name / found).string(),
                                near.empty() ? "" : "; did you mean '" + near + "'?"));
  }
  for (size_t c = 0; c < classes.size(); ++c) {
    const fs::path folder = root / name / classes[c];
    const std::vector<fs::path> images = fs::exists(folder) ? find_images(folder) : std::vector<fs::path>{};
    if (images.empty()) without.push_back(classes[c]);
    for (const fs::path& image : images) {
      split.ids.push_back(static_cast<int64_t>(files.size()));
      split.labels.push_back(static_cast<int64_t>(c));
      files.push_back(image);
    }
  }
  if (split.labels.empty()) {
    throw DataError(fmt::format("no {} file in the folders of '{}'", kImageEndings, (root / name).string()));
  }
  if (without.empty()) return split;
  const std::string what = fmt::format("{} of {} classes have no image in '{}'; the first is {}", without.size(),
                                       classes.size(), (root / name).string(), without.front());
  if (name == "train") throw DataError(what);
  log::warning("[data] " + what);
  return split;
}

void add_superclasses(const std::vector<std::string>& superclass_by_class, Dataset& dataset) {
  std::unordered_map<std::string, int64_t> index_of;
  for (const std::string& name : superclass_by_class) {
    const auto [found, is_new] = index_of.emplace(name, std::ssize(dataset.superclass_names));
    if (is_new) dataset.superclass_names.push_back(name);
    dataset.superclass_of.push_back(found->second);
  }
}

std::string digest_of(const Dataset& dataset, const std::vector<fs::path>& files, const fs::path& root) {
  Sha256 sha;
  sha.add(fmt::format("image_folder\nchannels {}\n", dataset.channels));
  for (const int64_t superclass : dataset.superclass_of) sha.add(fmt::format("{} ", superclass));
  for (const fs::path& file : files) {
    sha.add(fmt::format("\n{} {}", file.lexically_relative(root).string(), fs::file_size(file)));
  }
  return sha.hex();
}

}  // namespace

config::Keys ImageFolderOptions::keys() {
  using config::key;
  using Options = ImageFolderOptions;
  return {
      key("root", &Options::root, "", "Folder with train, val and test, each with a folder of images for every class.")
          .not_empty()
          .free(),
      key("superclasses", &Options::superclasses, "",
          "Text file with a line 'class,superclass' for every class, for label noise among look-alikes; none where it "
          "is empty."),
      key("class_names", &Options::class_names, "",
          "Text file with a line 'class,name' for every class, for tables; the folders' names where it is empty.")};
}

Dataset load_image_folder(const ImageFolderOptions& options, const ImageFileOptions& image_options) {
  const fs::path root = options.root;
  Dataset dataset;
  dataset.name = "image_folder";
  dataset.class_names = folders_in(root / "train");
  dataset.channels = image_options.channels();
  dataset.normalisation = "none";
  std::vector<fs::path> files;
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) {
    const char* name = split == &dataset.train ? "train" : split == &dataset.val ? "val" : "test";
    *split = read_split(root, name, dataset.class_names, files);
  }
  if (!options.superclasses.empty()) {
    add_superclasses(read_class_table(options.superclasses, dataset.class_names), dataset);
  }
  dataset.digest = digest_of(dataset, files, root);
  if (!options.class_names.empty()) dataset.class_names = read_class_table(options.class_names, dataset.class_names);
  const auto images = std::make_shared<ImageFiles>(std::move(files), image_options);
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) split->images = images;
  return dataset;
}

}  // namespace settrain
