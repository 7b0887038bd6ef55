// Images that text files list: `file_list`, and `imagenet_lt` by the published lists of Liu et al., "Large-Scale
// Long-Tailed Recognition in an Open World" (CVPR 2019).
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/entries.h"
#include "datasets/file_table.h"
#include "datasets/image_files.h"
#include "datasets/image_list.h"
#include "datasets/readers.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/log.h"

namespace settrain {
namespace {

struct FileListOptions {
  std::string root, train, val, test;
  std::string calibration{};  // empty: no list of their own
  int64_t num_classes = 0;
};

// The keys of both data sets; an empty default or 0 means that the user must give the key. `root_help` and `train_help`
// are the help of data.root and data.train.
config::Keys list_keys(const FileListOptions& defaults, const char* root_help, const char* train_help) {
  using config::key;
  using O = FileListOptions;
  return {key("root", &O::root, defaults.root, root_help).not_empty().free(),
          key("train", &O::train, defaults.train, train_help).not_empty(),
          key("val", &O::val, defaults.val, "The same for the validation images.").not_empty(),
          key("test", &O::test, defaults.test, "The same for the test images.").not_empty(),
          key("num_classes", &O::num_classes, defaults.num_classes, "Number of classes.")
              .at_least(2)
              .at_most(1e6)
              .in("classes")};
}

config::Key calibration_key() {
  return config::key("calibration", &FileListOptions::calibration, "",
                     "The same for images that only calibrate set rules, in a split `calibration` of their own, as "
                     "`settrain data split` writes it. Where it is empty, data.calibration_share may take some of the "
                     "validation images.");
}

std::string digest_of(const ImageList& list, const FileTable& files) {
  Sha256 sha;
  for (int64_t i = 0; i < list.size(); ++i) {
    sha.add(files.name_from_root(list.first_file + i) + "\n");
  }
  for (const auto* numbers : {&list.labels, &list.label_sets.offsets, &list.label_sets.classes}) {
    for (const int64_t number : *numbers) sha.add(fmt::format("{} ", number));
    sha.add(std::string("\n"));
  }
  return sha.hex();
}

// The places of a list's files. Warns of images that are listed twice.
FilePlaces places_of(const ImageList& list, const FileTable& files) {
  FilePlaces places(files, list.first_file, list.first_file + list.size());
  std::string first;
  int64_t repeated = 0;
  for (int64_t i = 0; i < list.size(); ++i) {
    const int64_t same = places.find(list.first_file + i).value() - list.first_file;
    if (same != i && ++repeated == 1) first = fmt::format("{}, as in {}", list.place(i), list.place(same));
  }
  if (repeated > 0)
    log::warning(fmt::format("[data] {} images are listed more than once; the first: {}", repeated, first));
  return places;
}

// Refuses training images in another list: an accuracy on them would be meaningless.
void check_no_training_image(const ImageList& train, const FilePlaces& places, const ImageList& other,
                             const FileTable& files) {
  for (int64_t i = 0; i < other.size(); ++i) {
    const std::optional<int64_t> found = places.find(other.first_file + i);
    if (!found) continue;
    throw DataError(fmt::format("{}: '{}' is a training image too: {}", other.place(i), files.path(*found).string(),
                                train.place(*found - train.first_file)));
  }
}

// Warns where all images of a validation or test list have one class: a model that always answers it would be perfect.
void warn_of_one_class(const ImageList& list) {
  const std::vector<int64_t>& labels = list.label_sets.empty() ? list.labels : list.label_sets.classes;
  if (list.size() < 2 || std::any_of(labels.begin(), labels.end(), [&](int64_t label) { return label != labels[0]; })) {
    return;
  }
  log::warning(
      fmt::format("[data] all {} images of '{}' are of one class, {}", list.size(), list.source.string(), labels[0]));
}

// The names of the classes: class_0, class_1, ...; or the folders of their training images, where every class has one
// folder of its own.
enum class ListedNames { kNumbers, kFolders };

// The lists of a data set, each with its key.
std::vector<std::pair<const char*, std::string>> listed_parts(const FileListOptions& options) {
  std::vector<std::pair<const char*, std::string>> parts{
      {"data.train", options.train}, {"data.val", options.val}, {"data.test", options.test}};
  if (!options.calibration.empty()) parts.emplace_back("data.calibration", options.calibration);
  return parts;
}

// The images of the lists, see read_image_list(). The class keys are the classes' numbers. A sample's id is its place
// in train, val, test and calibration, counted through. Throws DataError that names the file and the line, also where a
// training image is in another list; KeyError for a missing list.
Dataset load_file_list(const FileListOptions& options, const ImageFileOptions& image_options, ListedNames names) {
  const std::filesystem::path root = options.root;
  FileTable files(root);
  std::vector<ImageList> lists;
  for (const auto& [key, file] : listed_parts(options)) {
    if (!std::filesystem::is_regular_file(root / file)) {
      const char* moved =
          std::filesystem::is_directory(root)
              ? ""
              : ", a folder that is not there; where the data have moved, --set data.root=FOLDER names it";
      throw KeyError(key,
                     fmt::format("no file '{}'; lists are looked for in data.root{}", (root / file).string(), moved));
    }
    lists.push_back(read_image_list(root / file, options.num_classes, files));
    find_listed_files(lists.back(), files);
  }
  const FilePlaces training_images = places_of(lists[0], files);
  for (size_t i = 1; i < lists.size(); ++i) {
    check_no_training_image(lists[0], training_images, lists[i], files);
    places_of(lists[i], files);
    warn_of_one_class(lists[i]);
  }

  Dataset dataset;
  dataset.name = "file_list";
  for (int64_t c = 0; c < options.num_classes; ++c) {
    dataset.class_keys.push_back(fmt::format("{}", c));
    dataset.class_names.push_back(fmt::format("class_{}", c));
  }
  if (names == ListedNames::kFolders) {
    std::vector<std::string> folders = folders_of_classes(lists[0], files, options.num_classes);
    if (!folders.empty()) dataset.class_names = std::move(folders);
  }
  dataset.channels = image_options.channels();
  dataset.normalisation = "none";
  std::string digests;
  for (const ImageList& list : lists) digests += digest_of(list, files) + "\n";
  files.shrink_to_fit();
  const auto images = std::make_shared<ImageFiles>(std::move(files), image_options);
  const auto part = [&](const char* name, ImageList& list) {
    Split split = make_split(name, images, std::move(list.labels), list.first_file);
    split.label_sets = std::move(list.label_sets);
    return split;
  };
  dataset.train = part("train", lists[0]);
  dataset.val = part("val", lists[1]);
  dataset.test = part("test", lists[2]);
  if (lists.size() > 3) dataset.calibration = part("calibration", lists[3]);
  dataset.digest = sha256(fmt::format("file_list\n{}{}\nchannels {}\n", digests, images->digest(), dataset.channels));
  return dataset;
}

// Throws DataError that says at once what is missing, where it was looked for and where it comes from.
void check_lists_present(const FileListOptions& options) {
  const std::filesystem::path root = options.root;
  std::string missing;
  for (const auto& [key, file] : listed_parts(options)) {
    if (!std::filesystem::is_regular_file(root / file)) missing += fmt::format("\n  the list {} ({})", file, key);
  }
  // With all lists there, load_file_list() reports missing images.
  if (!missing.empty() && !std::filesystem::is_directory(root / "train")) missing += "\n  ImageNet's folder train/";
  if (!missing.empty() && !std::filesystem::is_directory(root / "val")) missing += "\n  ImageNet's folder val/";
  if (missing.empty()) return;
  throw DataError(fmt::format(
      "imagenet_lt: in '{}' (data.root) there is not:{}\nThe lists come with the code of Liu et al. (CVPR 2019), "
      "github.com/zhmiao/OpenLongTailRecognition-OLTR; the images, with a folder a class in train/ and val/, from "
      "image-net.org, which asks for a registration",
      options.root, missing));
}

// The published lists, whose classes are named by ImageNet's folders of their images.
Dataset load_imagenet_lt(const FileListOptions& options, const ImageFileOptions& image_options) {
  check_lists_present(options);
  Dataset dataset = load_file_list(options, image_options, ListedNames::kFolders);
  dataset.name = "imagenet_lt";
  dataset.normalisation = "imagenet";
  return dataset;
}

}  // namespace

std::vector<std::string> folders_of_classes(const ImageList& train, const FileTable& files, int64_t num_classes) {
  std::vector<std::string> folders(static_cast<size_t>(num_classes));
  for (int64_t i = 0; i < train.size(); ++i) {
    std::string_view name = files.name(train.first_file + i);
    name = name.substr(0, std::min(name.rfind('/'), name.size()));
    if (name.size() == files.name(train.first_file + i).size()) return {};  // in no folder
    name.remove_prefix(name.rfind('/') + 1);
    std::string& folder = folders[static_cast<size_t>(train.labels[static_cast<size_t>(i)])];
    if (folder.empty()) folder = name;
    if (folder != name) return {};
  }
  const std::set<std::string_view> different(folders.begin(), folders.end());
  return different.size() == folders.size() && !different.contains("") ? folders : std::vector<std::string>{};
}

DatasetEntry file_list_entry() {
  return {
      .name = "file_list",
      .help = "Images that text files list, with one or several labels each.",
      .keys = config::joined(
          list_keys({}, "Folder that the lists' paths start from.",
                    "Text file of the training images, below data.root unless absolute: lines 'path label' or 'path "
                    "label,label,...', classes from 0."),
          config::Keys{calibration_key()}, ImageFileOptions::keys()),
      .make = [](const config::Config& config) {
        return load_file_list(config.read<FileListOptions>("data"), config.read<ImageFileOptions>("data"),
                              ListedNames::kNumbers);
      }};
}

DatasetEntry imagenet_lt_entry() {
  Download download = imagenet_entry().download.value();
  download.name = "imagenet_lt";
  download.page = "https://github.com/zhmiao/OpenLongTailRecognition-OLTR (lists); the images are ImageNet's";
  download.by_hand +=
      "Get the lists ImageNet_LT_train.txt, ImageNet_LT_val.txt and ImageNet_LT_test.txt by the links of\n"
      "https://github.com/zhmiao/OpenLongTailRecognition-OLTR and put them into {}/\n";
  for (const char* split : {"train", "val", "test"}) download.proof.push_back(fmt::format("ImageNet_LT_{}.txt", split));
  return {.name = "imagenet_lt",
          .help =
              "ImageNet-LT (Liu et al. 2019): 115,846 training images of 1,000 classes, 5 to 1,280 of each, by the "
              "published lists.",
          .keys = config::joined(
              list_keys({.root = "${env:SETTRAIN_DATA:-data}/imagenet",
                         .train = "ImageNet_LT_train.txt",
                         .val = "ImageNet_LT_val.txt",
                         .test = "ImageNet_LT_test.txt",
                         .num_classes = 1000},
                        "Folder that the lists' paths, such as train/n01440764/n01440764_190.JPEG, start from.",
                        "List of the training images, below data.root unless absolute: lines 'path label'."),
              ImageFileOptions::keys()),
          .make =
              [](const config::Config& config) {
                return load_imagenet_lt(config.read<FileListOptions>("data"), config.read<ImageFileOptions>("data"));
              },
          .facts =
              [](const config::Config& config) {
                return DataFacts{.classes = 1000,
                                 .train = 115'846,
                                 .val = 20'000,
                                 .test = 50'000,
                                 .channels = config.read<ImageFileOptions>("data").channels()};
              },
          .download = std::move(download)};
}

}  // namespace settrain
