// Images in a folder for every class.
#include <fmt/format.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/entries.h"
#include "datasets/find_images.h"
#include "datasets/image_files.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

struct ImageFolderOptions {
  std::string root;

  static config::Keys keys();
};

std::string digest_of(const Dataset& dataset, const FileTable& files) {
  Sha256 sha;
  sha.add(fmt::format("image_folder\nchannels {}\n", dataset.channels));
  for (int64_t i = 0; i < files.size(); ++i) sha.add(fmt::format("\n{} {}", files.name(i), files.file_size(i)));
  return sha.hex();
}

config::Keys ImageFolderOptions::keys() {
  return {config::key("root", &ImageFolderOptions::root, "",
                      "Folder with train, val and test, each with a folder of images for every class.")
              .not_empty()
              .free()};
}

// Throws DataError where the training split has fewer than two classes.
void check_classes(const fs::path& train, const std::vector<std::string>& classes) {
  if (classes.size() >= 2) return;
  const std::string inner = folders_in_classes(train, classes);
  throw DataError(fmt::format("'{}' has {}, but a classifier needs at least two classes, a folder for each{}",
                              train.string(),
                              classes.empty() ? "no folder of a class" : "one class, '" + classes[0] + "'",
                              inner.empty() ? "" : "; are the folders in it the classes (" + inner + ")?"));
}

constexpr const char* kExpected =
    "data.root should hold train, val and test, each with a folder for every class; `settrain data split` divides one "
    "folder of classes";

// Throws DataError with advice where a split's folder has another name, or all of them lie in a folder of the root.
void check_split_folders(const fs::path& root) {
  for (const char* split : {"train", "val", "test"}) {
    const std::string other = misnamed_split(root / split);
    if (!other.empty()) throw DataError(fmt::format("no folder '{}', but {}", (root / split).string(), other));
  }
  if (fs::exists(root / "train")) return;
  for (const std::string& name : folders_in(root, kExpected)) {
    if (!fs::is_directory(root / name / "train")) continue;
    throw DataError(fmt::format("no folder '{}', but '{}' is there: set data.root to '{}'", (root / "train").string(),
                                (root / name / "train").string(), (root / name).string()));
  }
}

// The images below root/train/CLASS, root/val/CLASS and root/test/CLASS, see find_images(). The classes are the folders
// of root/train that are not hidden, in the order of their names. A sample's id is its place among all files of train,
// val and test, in the order of their paths.
//
// A class without an image in val or test is a warning. Throws DataError, naming the folder, where a split is missing
// or has no image, where val or test has a class that train lacks, where a training class has no image, and where train
// has fewer than two classes.
Dataset load_image_folder(const ImageFolderOptions& options, const ImageFileOptions& image_options) {
  const fs::path root = options.root;
  Dataset dataset;
  dataset.name = "image_folder";
  check_split_folders(root);
  dataset.class_names = folders_in(root / "train", kExpected);
  dataset.channels = image_options.channels();
  dataset.normalisation = "none";
  FileTable files(root);
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) {
    const char* name = split == &dataset.train ? "train" : split == &dataset.val ? "val" : "test";
    const int64_t first = files.size();
    const bool may_lack = split != &dataset.train;
    *split = make_split(name, nullptr, read_class_images(name, dataset.class_names, may_lack, files), first);
    if (split != &dataset.train) continue;
    check_classes(root / name, dataset.class_names);
    warn_of_inner_classes(root / name, dataset.class_names, files, /*depth=*/2);
  }
  measure_found(files);
  dataset.digest = digest_of(dataset, files);
  const auto images = std::make_shared<ImageFiles>(std::move(files), image_options);
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) split->images = images;
  return dataset;
}

}  // namespace

DatasetEntry image_folder_entry() {
  return {.name = "image_folder",
          .help = "Images in folders root/{train,val,test}/CLASS.",
          .keys = config::joined(ImageFolderOptions::keys(), ImageFileOptions::keys()),
          .make = [](const config::Config& config) {
            return load_image_folder(config.read<ImageFolderOptions>("data"), config.read<ImageFileOptions>("data"));
          }};
}

}  // namespace settrain
