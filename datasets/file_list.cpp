#include "datasets/file_list.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datasets/file_places.h"
#include "datasets/image_files.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/log.h"

namespace settrain {
namespace {

std::string digest_of(const ImageList& list, const FileTable& files) {
  Sha256 sha;
  for (int64_t i = 0; i < list.size(); ++i) {
    std::string_view name = files.name(list.first_file + i);
    std::string room;
    if (name.starts_with('/')) {
      room = std::filesystem::path(name).lexically_relative(files.root()).string();  // empty elsewhere
      if (!room.empty()) name = room;
    }
    sha.add(name).add(std::string_view("\n"));
  }
  for (const auto* numbers : {&list.labels, &list.label_sets.offsets, &list.label_sets.classes}) {
    for (const int64_t number : *numbers) sha.add(fmt::format("{} ", number));
    sha.add(std::string("\n"));
  }
  return sha.hex();
}

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

// An accuracy on images that were trained on says nothing.
void check_no_training_image(const ImageList& train, const FilePlaces& places, const ImageList& other,
                             const FileTable& files) {
  for (int64_t i = 0; i < other.size(); ++i) {
    const std::optional<int64_t> found = places.find(other.first_file + i);
    if (!found) continue;
    throw DataError(fmt::format("{}: '{}' is a training image too: {}", other.place(i), files.path(*found).string(),
                                train.place(*found - train.first_file)));
  }
}

}  // namespace

config::Keys FileListOptions::keys() {
  using config::key;
  using Options = FileListOptions;
  const auto list = [](const char* name, std::string Options::*member, const char* help) {
    return key(name, member, "", help).not_empty();
  };
  return {key("root", &Options::root, "", "Folder that the lists' paths start from.").not_empty().free(),
          list("train", &Options::train,
               "Text file of the training images, below data.root unless absolute: lines 'path label' or 'path "
               "label,label,...', classes from 0."),
          list("val", &Options::val, "The same of the validation images."),
          list("test", &Options::test, "The same of the test images."),
          key("num_classes", &Options::num_classes, 0, "Number of classes.").at_least(2).at_most(1e6).in("classes")};
}

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

Dataset load_file_list(const FileListOptions& options, const ImageFileOptions& image_options, ListedNames names) {
  const std::filesystem::path root = options.root;
  FileTable files(root);
  std::vector<ImageList> lists;
  for (const auto& [key, file] :
       {std::pair("data.train", options.train), {"data.val", options.val}, {"data.test", options.test}}) {
    if (!std::filesystem::is_regular_file(root / file)) {
      throw KeyError(key, fmt::format("no file '{}'; lists are looked for in data.root", (root / file).string()));
    }
    lists.push_back(read_image_list(root / file, options.num_classes, files));
    find_listed_files(lists.back(), files);
  }
  const FilePlaces training_images = places_of(lists[0], files);
  for (size_t i = 1; i < lists.size(); ++i) check_no_training_image(lists[0], training_images, lists[i], files);

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
    Split split{name, images, {}, std::move(list.labels), std::move(list.label_sets)};
    split.ids.resize(split.labels.size());
    std::iota(split.ids.begin(), split.ids.end(), list.first_file);
    return split;
  };
  dataset.train = part("train", lists[0]);
  dataset.val = part("val", lists[1]);
  dataset.test = part("test", lists[2]);
  dataset.digest = sha256(fmt::format("file_list\n{}{}\nchannels {}\n", digests, images->digest(), dataset.channels));
  return dataset;
}

DatasetEntry file_list_entry() {
  return {.name = "file_list",
          .help = "Images that text files list with one label each, or several.",
          .keys = config::joined(FileListOptions::keys(), ImageFileOptions::keys()),
          .make = [](const config::Config& config) {
            return load_file_list(config.read<FileListOptions>("data"), config.read<ImageFileOptions>("data"));
          }};
}

}  // namespace settrain
