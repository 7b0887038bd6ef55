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

// The images below root/train/CLASS, root/val/CLASS and root/test/CLASS, see find_images(). The classes are the folders
// of root/train that are not hidden, in the order of their names. A sample's id is its place among all files of train,
// val and test, in the order of their paths.
//
// A class without an image in val or test is a warning. Throws DataError, naming the folder, where a split is missing
// or has no image, where val or test has a class that train lacks, and where a training class has no image.
Dataset load_image_folder(const ImageFolderOptions& options, const ImageFileOptions& image_options) {
  const fs::path root = options.root;
  Dataset dataset;
  dataset.name = "image_folder";
  dataset.class_names =
      folders_in(root / "train", "data.root should hold train, val and test, each with a folder for every class");
  dataset.channels = image_options.channels();
  dataset.normalisation = "none";
  FileTable files(root);
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) {
    const char* name = split == &dataset.train ? "train" : split == &dataset.val ? "val" : "test";
    const int64_t first = files.size();
    const bool may_lack = split != &dataset.train;
    *split = make_split(name, nullptr, read_class_images(name, dataset.class_names, may_lack, files), first);
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
