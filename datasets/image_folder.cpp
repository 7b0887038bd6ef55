#include "datasets/image_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <unordered_map>
#include <utility>
#include <vector>

#include "datasets/class_folders.h"
#include "datasets/class_table.h"
#include "datasets/image_files.h"
#include "src/core/digest.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// The files of a split with their labels, added to `files`.
Split read_split(const std::string& name, const std::vector<std::string>& classes, FileTable& files) {
  Split split{name, nullptr, {}, {}};
  const int64_t first = files.size();
  split.labels = add_class_images(name, classes, files);
  check_every_class(split.labels, classes, files.root() / name, /*may_lack=*/name != "train");
  split.ids.resize(split.labels.size());
  std::iota(split.ids.begin(), split.ids.end(), first);
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

std::string digest_of(const Dataset& dataset, const FileTable& files) {
  Sha256 sha;
  sha.add(fmt::format("image_folder\nsize {} channels {}\n", dataset.height, dataset.channels));
  for (const int64_t superclass : dataset.superclass_of) sha.add(fmt::format("{} ", superclass));
  for (int64_t i = 0; i < files.size(); ++i) sha.add(fmt::format("\n{} {}", files.name(i), files.file_size(i)));
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
  dataset.class_names =
      folders_in(root / "train", "data.root should hold train, val and test, each with a folder for every class");
  dataset.channels = image_options.channels();
  dataset.height = dataset.width = image_options.image_size;
  dataset.normalisation = "none";
  FileTable files(root);
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) {
    const char* name = split == &dataset.train ? "train" : split == &dataset.val ? "val" : "test";
    *split = read_split(name, dataset.class_names, files);
  }
  measure_found(files);
  if (!options.superclasses.empty()) {
    add_superclasses(read_class_table(options.superclasses, dataset.class_names), dataset);
  }
  dataset.digest = digest_of(dataset, files);
  if (!options.class_names.empty()) dataset.class_names = read_class_table(options.class_names, dataset.class_names);
  const auto images = std::make_shared<ImageFiles>(std::move(files), dataset.channels, dataset.height, dataset.width);
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) split->images = images;
  return dataset;
}

}  // namespace settrain
