#include "datasets/image_folder.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "datasets/class_folders.h"
#include "datasets/image_files.h"
#include "src/core/digest.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// The files of a split with their labels, added to `files`.
Split read_split(const std::string& name, const std::vector<std::string>& classes, FileTable& files) {
  Split split{name, nullptr, {}, {}};
  const int64_t first = files.size();
  split.labels = read_class_images(name, classes, /*may_lack=*/name != "train", files);
  split.ids.resize(split.labels.size());
  std::iota(split.ids.begin(), split.ids.end(), first);
  return split;
}

std::string digest_of(const Dataset& dataset, const FileTable& files) {
  Sha256 sha;
  sha.add(fmt::format("image_folder\nchannels {}\n", dataset.channels));
  for (int64_t i = 0; i < files.size(); ++i) sha.add(fmt::format("\n{} {}", files.name(i), files.file_size(i)));
  return sha.hex();
}

}  // namespace

config::Keys ImageFolderOptions::keys() {
  return {config::key("root", &ImageFolderOptions::root, "",
                      "Folder with train, val and test, each with a folder of images for every class.")
              .not_empty()
              .free()};
}

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
    *split = read_split(name, dataset.class_names, files);
  }
  measure_found(files);
  dataset.digest = digest_of(dataset, files);
  const auto images = std::make_shared<ImageFiles>(std::move(files), image_options);
  for (Split* split : {&dataset.train, &dataset.val, &dataset.test}) split->images = images;
  return dataset;
}

DatasetEntry image_folder_entry() {
  return {.name = "image_folder",
          .help = "Images in folders root/{train,val,test}/CLASS.",
          .keys = config::joined(ImageFolderOptions::keys(), ImageFileOptions::keys()),
          .make = [](const config::Config& config) {
            return load_image_folder(config.read<ImageFolderOptions>("data"), config.read<ImageFileOptions>("data"));
          }};
}

}  // namespace settrain
