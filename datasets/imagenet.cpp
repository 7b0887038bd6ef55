// ImageNet: Russakovsky et al., "ImageNet Large Scale Visual Recognition Challenge" (2015).
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/entries.h"
#include "datasets/find_images.h"
#include "datasets/image_files.h"
#include "datasets/readers.h"
#include "datasets/registry.h"
#include "datasets/text_lines.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kKaggle = "ImageId,PredictionString";
constexpr const char* kMakeSynsets =
    "python3 -c \"from scipy.io import loadmat; print(*[s[1] for s in loadmat('meta.mat', "
    "squeeze_me=True)['synsets'][:1000]], sep='\\n')\" >synsets.txt";

struct NumberedLine {
  int64_t number;
  std::string text;
};

// The non-empty lines, without blanks at their ends.
std::vector<NumberedLine> read_lines(const std::filesystem::path& file) {
  std::vector<NumberedLine> found;
  for (TextLines lines(file); lines.next();) {
    const std::string& text = lines.line();
    const size_t begin = text.find_first_not_of(" \t\r"), end = text.find_last_not_of(" \t\r");
    if (begin != std::string::npos) found.push_back({lines.number(), text.substr(begin, end - begin + 1)});
  }
  return found;
}

[[noreturn]] void fail(const std::filesystem::path& file, int64_t line, const std::string& what) {
  throw DataError(fmt::format("{}:{}: {}", file.string(), line, what));
}

using ClassIndex = std::unordered_map<std::string, int64_t>;  // by WNID

std::vector<int64_t> read_devkit(const std::filesystem::path& file, const std::vector<NumberedLine>& lines,
                                 const std::filesystem::path& synsets_file, size_t num_images,
                                 const ClassIndex& classes) {
  if (synsets_file.empty()) {
    throw KeyError("data.synsets",
                   fmt::format("'{}' has ILSVRC2012_IDs; expected a text file whose line i is the WNID of ID i. In the "
                               "devkit's folder data/ this makes it: {}",
                               file.string(), kMakeSynsets));
  }
  const std::vector<NumberedLine> synsets = read_lines(synsets_file);
  std::set<std::string_view> above;
  for (const NumberedLine& synset : synsets) {
    if (!above.insert(synset.text).second) {
      fail(synsets_file, synset.number, fmt::format("'{}' has a line above", synset.text.substr(0, 80)));
    }
  }
  if (lines.size() != num_images) {
    throw DataError(
        fmt::format("'{}' has {} lines, expected {}, one an image of val", file.string(), lines.size(), num_images));
  }
  std::vector<int64_t> labels;
  for (const NumberedLine& line : lines) {
    const std::optional<int64_t> id = parse_number<int64_t>(line.text);
    if (!id) fail(file, line.number, fmt::format("expected an ILSVRC2012_ID, got '{}'", line.text.substr(0, 80)));
    if (*id < 1 || *id > std::ssize(synsets)) {
      fail(file, line.number,
           fmt::format("expected IDs from 1 to {}, the lines of '{}'; got {}", synsets.size(), synsets_file.string(),
                       *id));
    }
    const NumberedLine& synset = synsets[static_cast<size_t>(*id - 1)];
    const auto label = classes.find(synset.text);
    if (label == classes.end()) {
      fail(synsets_file, synset.number, fmt::format("'{}' is no folder of train", synset.text.substr(0, 80)));
    }
    labels.push_back(label->second);
  }
  return labels;
}

}  // namespace

std::vector<int64_t> read_imagenet_labels(const std::filesystem::path& file, const std::filesystem::path& synsets,
                                          const std::vector<std::string>& names,
                                          const std::vector<std::string>& class_names) {
  ClassIndex classes;
  for (size_t c = 0; c < class_names.size(); ++c) classes.emplace(class_names[c], static_cast<int64_t>(c));
  const std::vector<NumberedLine> lines = read_lines(file);
  if (lines.empty()) throw DataError(fmt::format("'{}' is empty", file.string()));
  const bool is_kaggle = lines[0].text.starts_with(kKaggle);
  if (!is_kaggle && parse_number<int64_t>(lines[0].text))
    return read_devkit(file, lines, synsets, names.size(), classes);

  constexpr int64_t kNone = -1;
  std::vector<int64_t> labels(names.size(), kNone);
  for (size_t i = is_kaggle ? 1 : 0; i < lines.size(); ++i) {
    const auto& [number, text] = lines[i];
    const size_t gap = is_kaggle ? text.find(',') : text.find_last_of(" \t");
    const size_t end = gap == std::string::npos ? gap : text.find_last_not_of(" \t", gap - 1);
    if (end == std::string::npos) {
      fail(file, number,
           fmt::format("expected '{}', got '{}'", is_kaggle ? "IMAGE,WNID ..." : "FILE WNID' or 'FILE INDEX",
                       text.substr(0, 80)));
    }
    const std::string rest = text.substr(gap + 1);
    const std::string label = is_kaggle ? rest.substr(0, rest.find(' ')) : rest;
    const auto wnid = classes.find(label);
    std::optional<int64_t> index;
    if (wnid != classes.end()) {
      index = wnid->second;
    } else if (!is_kaggle) {
      index = parse_number<int64_t>(label);
    }
    if (!index || *index < 0 || *index >= std::ssize(class_names)) {
      fail(file, number,
           fmt::format("'{}' is no folder of train{}", label.substr(0, 80),
                       is_kaggle ? "" : fmt::format(" and no index from 0 to {}", class_names.size() - 1)));
    }
    const std::string image = std::filesystem::path(text.substr(0, is_kaggle ? gap : end + 1)).filename().string();
    // Kaggle's names have no ending, so they are compared with the start of the files' names.
    const std::string name = is_kaggle ? image + '.' : image;
    const auto found = std::lower_bound(names.begin(), names.end(), name);
    if (found == names.end() || (is_kaggle ? !found->starts_with(name) : *found != name)) {
      fail(file, number, fmt::format("there is no image '{}'", image.substr(0, 80)));
    }
    int64_t& place = labels[static_cast<size_t>(found - names.begin())];
    if (place != kNone) fail(file, number, fmt::format("'{}' has a line above", image));
    place = *index;
  }
  const auto without = std::find(labels.begin(), labels.end(), kNone);
  if (without != labels.end()) {
    throw DataError(fmt::format("{}: no line for {} of {} images; the first is '{}'", file.string(),
                                std::count(labels.begin(), labels.end(), kNone), names.size(),
                                names[static_cast<size_t>(without - labels.begin())]));
  }
  return labels;
}

namespace {

struct ImagenetOptions {
  std::string root, val_labels, synsets;

  static config::Keys keys();
};

// Reports everything that is missing in one error.
void check_present(const ImagenetOptions& options, bool val_is_flat) {
  const fs::path root = options.root;
  std::string missing;
  const auto miss = [&](const std::string& what) { missing += "\n  " + what; };
  const auto folder = [&](const char* name, const char* contents) {
    if (fs::is_directory(root / name)) return;
    const std::string other = misnamed_split(root / name);
    miss(fmt::format("{}/, with {}{}", name, contents, other.empty() ? "" : "; " + other));
  };
  folder("train", "a folder for each of the 1,000 classes, named by WordNet ids such as n01440764");
  folder("val", "the same folders, or all 50,000 validation images");
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

// Adds the images of root/val to `files`, and returns their labels.
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
  // Digests of ImageNet have always had a line for the subset, even where it is all images. Resuming compares digests.
  if (split.train_size == SplitOptions::kAll) sha.add(fmt::format("train_size {}\n", SplitOptions::kAll));
  for (int64_t i = 0; i < files.size(); ++i) sha.add(fmt::format("{} {}\n", files.name(i), files.file_size(i)));
  for (const int64_t label : labels) sha.add(fmt::format("{} ", label));
  return sha.hex();
}

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

// The challenge's images: root/train/WNID/*, and root/val, either in folders WNID too, or all in one folder with a file
// of labels, see read_imagenet_labels(). The classes are the folders of train in the order of their names. The official
// validation images are the split `test`, as in the papers; `val` is held out of the training images. A sample's id is
// its place among all files, train and then val, in the order of their paths.
//
// Throws DataError that lists everything that is missing, where it was looked for and where it comes from; KeyError
// where keys do not suit the images.
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
  std::vector<int64_t> test_labels = read_val(options, val_is_flat, dataset.class_names, files);
  labels.insert(labels.end(), test_labels.begin(), test_labels.end());
  measure_found(files);

  dataset.digest = digest_of(dataset, files, labels, split);
  const auto images = std::make_shared<ImageFiles>(std::move(files), image_options);
  dataset.train = make_split("train", images, std::move(held_out.train), labels);
  dataset.val = make_split("val", images, std::move(held_out.val), labels);
  dataset.test = make_split("test", images, std::move(test_labels), num_train);
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

}  // namespace

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
