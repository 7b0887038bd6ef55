#include "datasets/imagenet.h"

#include <fmt/format.h>

#include <filesystem>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "datasets/class_folders.h"
#include "datasets/find_images.h"
#include "datasets/imagenet_labels.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

// Everything that is not there, in one error.
void check_present(const ImagenetOptions& options, bool val_is_flat) {
  const fs::path root = options.root;
  std::string missing;
  const auto miss = [&](const std::string& what) { missing += "\n  " + what; };
  if (!fs::is_directory(root / "train")) {
    miss("train/, with a folder for each of the 1,000 classes, named by WordNet ids such as n01440764");
  }
  if (!fs::is_directory(root / "val")) miss("val/, with the same folders, or all 50,000 validation images");
  const auto file = [&](const char* key, const std::string& name) {
    if (!name.empty() && !fs::is_regular_file(root / name)) miss(fmt::format("{} (data.{})", name, key));
  };
  if (val_is_flat) file("val_labels", options.val_labels);
  if (val_is_flat) file("synsets", options.synsets);
  if (val_is_flat && options.val_labels.empty()) {
    miss(
        "the labels of the images in val/, which are in no folders: set data.val_labels to a file of lines 'FILE "
        "WNID', to Kaggle's LOC_val_solution.csv, or to the devkit's ILSVRC2012_validation_ground_truth.txt");
  }
  if (missing.empty()) return;
  throw DataError(fmt::format(
      "imagenet: in '{}' (data.root) there is not:{}\nThe archives ILSVRC2012_img_train.tar, ILSVRC2012_img_val.tar "
      "and ILSVRC2012_devkit_t12.tar.gz come from image-net.org, which asks for a registration; unpack the first into "
      "a folder a class",
      options.root, missing));
}

// The labels of root/val's images, which are added to `files`.
std::vector<int64_t> read_val(const ImagenetOptions& options, bool is_flat, const std::vector<std::string>& classes,
                              FileTable& files) {
  const fs::path root = options.root;
  if (!is_flat) return read_class_images("val", classes, /*may_lack=*/true, files);
  const int64_t first = files.size();
  find_images("val", files);
  if (files.size() == first) throw DataError(fmt::format("no {} file in '{}'", kImageEndings, (root / "val").string()));
  std::vector<std::string> names;
  for (int64_t i = first; i < files.size(); ++i) names.push_back(fs::path(files.name(i)).filename().string());
  const fs::path synsets = options.synsets.empty() ? fs::path() : root / options.synsets;
  return read_imagenet_labels(root / options.val_labels, synsets, names, classes);
}

std::string digest_of(const Dataset& dataset, const FileTable& files, const std::vector<int64_t>& labels,
                      const SplitOptions& split) {
  Sha256 sha;
  sha.add(fmt::format("imagenet\nchannels {}\n{}", dataset.channels, split.recipe()));
  // Digests of ImageNet have always had a line of the subset, also where it is all; checkpoints are resumed by them.
  if (split.train_size == SplitOptions::kAll) sha.add(fmt::format("train_size {}\n", SplitOptions::kAll));
  for (int64_t i = 0; i < files.size(); ++i) sha.add(fmt::format("{} {}\n", files.name(i), files.file_size(i)));
  for (const int64_t label : labels) sha.add(fmt::format("{} ", label));
  return sha.hex();
}

}  // namespace

config::Keys ImagenetOptions::keys() {
  using config::key;
  using Options = ImagenetOptions;
  return {
      key("root", &Options::root, "${env:SETTRAIN_DATA:-data}/imagenet",
          "Folder with train and val, see docs/file_formats.md.")
          .not_empty()
          .free(),
      key("val_labels", &Options::val_labels, "",
          "Text file with the labels of val's images where these are in no folders, below data.root unless absolute: "
          "lines 'FILE WNID' or 'FILE INDEX', LOC_val_solution.csv, or ILSVRC2012_validation_ground_truth.txt.")
          .free(),
      key("synsets", &Options::synsets, "",
          "Text file whose line i is the WNID of ILSVRC2012_ID i, for ILSVRC2012_validation_ground_truth.txt.")
          .free(),
  };
}

Dataset load_imagenet(const ImagenetOptions& options, const SplitOptions& split,
                      const ImageFileOptions& image_options) {
  const fs::path root = options.root;
  const bool val_is_flat = fs::is_directory(root / "val") && folders_in(root / "val", "").empty();
  check_present(options, val_is_flat);

  Dataset dataset;
  dataset.name = "imagenet";
  dataset.class_names = folders_in(root / "train", "");
  dataset.channels = image_options.channels();
  dataset.normalisation = "imagenet";
  FileTable files(root);
  std::vector<int64_t> labels = read_class_images("train", dataset.class_names, /*may_lack=*/false, files);
  HeldOut held_out = hold_out(labels, dataset.num_classes(), split);
  const auto num_train = static_cast<int64_t>(labels.size());
  const std::vector<int64_t> test_labels = read_val(options, val_is_flat, dataset.class_names, files);
  labels.insert(labels.end(), test_labels.begin(), test_labels.end());
  std::vector<int64_t> test_ids(test_labels.size());
  std::iota(test_ids.begin(), test_ids.end(), num_train);
  measure_found(files);

  dataset.digest = digest_of(dataset, files, labels, split);
  const auto images = std::make_shared<ImageFiles>(std::move(files), image_options);
  dataset.train = make_split("train", images, std::move(held_out.train), labels);
  dataset.val = make_split("val", images, std::move(held_out.val), labels);
  dataset.test = make_split("test", images, std::move(test_ids), labels);
  return dataset;
}

// MD5: torchvision/datasets/imagenet.py.
Download imagenet_download() {
  return {.name = "imagenet",
          .page = "https://image-net.org/download-images (after registration)",
          .licence = "for non-commercial research and education, by image-net.org's terms of access",
          .folder = "imagenet",
          .proof = {"train", "val"},
          .by_hand =
              "Register at https://image-net.org/download-images and get, of ILSVRC 2012 (classification and "
              "localisation),\n"
              "  ILSVRC2012_img_train.tar  MD5 1d675b47d978889d74fa0da5fadfb00e\n"
              "  ILSVRC2012_img_val.tar    MD5 29b22e2961454d5413ddabcf34fc5622\n"
              "Unpack them so that every class has a folder:\n"
              "  {}/train/n01440764/n01440764_762.JPEG and so on (the archive holds an archive a class)\n"
              "  {}/val/n01440764/ILSVRC2012_val_00029930.JPEG and so on (the archive is flat; the development kit has "
              "the labels)\n"};
}

DatasetEntry imagenet_entry() {
  return {
      .name = "imagenet",
      .help =
          "ImageNet (Russakovsky et al. 2015): 1,281,167 training images of 1,000 classes, of which some are "
          "held out for validation; the 50,000 official validation images are the test split.",
      .keys = config::joined(ImagenetOptions::keys(), SplitOptions::keys(50000, "balanced"), ImageFileOptions::keys()),
      .make =
          [](const config::Config& config) {
            return load_imagenet(config.read<ImagenetOptions>("data"), config.read<SplitOptions>("data"),
                                 config.read<ImageFileOptions>("data"));
          },
      .facts =
          [](const config::Config& config) {
            return held_out_facts({.classes = 1000,
                                   .train = 1'281'167,
                                   .test = 50'000,
                                   .channels = config.read<ImageFileOptions>("data").channels()},
                                  config.read<SplitOptions>("data"));
          },
      .statistics = {{"imagenet", {{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}}}},
      .download = imagenet_download()};
}

}  // namespace settrain
