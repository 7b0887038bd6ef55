#include "datasets/file_list.h"

#include <fmt/format.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "datasets/class_table.h"
#include "datasets/image_files.h"
#include "datasets/image_list.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/core/log.h"

namespace settrain {
namespace {

std::string digest_of(const ImageList& list, const std::filesystem::path& root) {
  Sha256 sha;
  for (const std::filesystem::path& file : list.files) {
    const std::filesystem::path relative = file.lexically_relative(root);  // empty for an absolute path elsewhere
    sha.add((relative.empty() ? file : relative).string() + "\n");
  }
  for (const auto* numbers : {&list.labels, &list.label_sets.offsets, &list.label_sets.classes}) {
    for (const int64_t number : *numbers) sha.add(fmt::format("{} ", number));
    sha.add(std::string("\n"));
  }
  return sha.hex();
}

using Places = std::unordered_map<std::string, size_t>;  // of images in a list, by path

Places places_of(const ImageList& list) {
  Places places;
  std::string first;
  size_t repeated = 0;
  for (size_t i = 0; i < list.files.size(); ++i) {
    const auto [found, is_new] = places.emplace(list.files[i].lexically_normal().string(), i);
    if (!is_new && ++repeated == 1) first = fmt::format("{}, as in {}", list.place(i), list.place(found->second));
  }
  if (repeated > 0) log::warning(fmt::format("[data] {} images are listed once more; the first: {}", repeated, first));
  return places;
}

// An accuracy on images that were trained on says nothing.
void check_no_training_image(const ImageList& train, const Places& places, const ImageList& other) {
  for (size_t i = 0; i < other.files.size(); ++i) {
    const auto found = places.find(other.files[i].lexically_normal().string());
    if (found == places.end()) continue;
    throw DataError(
        fmt::format("{}: '{}' is a training image too: {}", other.place(i), found->first, train.place(found->second)));
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
          key("num_classes", &Options::num_classes, 0, "Number of classes.").at_least(2).at_most(1e6).in("classes"),
          key("class_names", &Options::class_names, "",
              "Text file with a line 'class_N,name' for every class, below data.root unless absolute, for tables; the "
              "classes are class_0, class_1 and so on where it is empty.")};
}

Dataset load_file_list(const FileListOptions& options, const ImageFileOptions& image_options) {
  const std::filesystem::path root = options.root;
  std::vector<ImageList> lists;
  for (const auto& [key, file] :
       {std::pair("data.train", options.train), {"data.val", options.val}, {"data.test", options.test}}) {
    if (!std::filesystem::is_regular_file(root / file)) {
      throw KeyError(key, fmt::format("no file '{}'; lists are looked for in data.root", (root / file).string()));
    }
    lists.push_back(read_image_list(root / file, root, options.num_classes));
  }
  const Places training_images = places_of(lists[0]);
  for (size_t i = 1; i < lists.size(); ++i) check_no_training_image(lists[0], training_images, lists[i]);

  Dataset dataset;
  dataset.name = "file_list";
  for (int64_t c = 0; c < options.num_classes; ++c) dataset.class_names.push_back(fmt::format("class_{}", c));
  if (!options.class_names.empty()) {
    dataset.class_names = read_class_table(root / options.class_names, dataset.class_names);
  }
  dataset.channels = image_options.channels();
  dataset.height = dataset.width = image_options.image_size;
  dataset.normalisation = "none";
  std::vector<std::filesystem::path> files;
  std::string digests;
  for (const ImageList& list : lists) {
    files.insert(files.end(), list.files.begin(), list.files.end());
    digests += digest_of(list, root) + "\n";
  }
  const auto images = std::make_shared<ImageFiles>(std::move(files), dataset.channels, dataset.height, dataset.width);
  int64_t id = 0;
  const auto part = [&](const char* name, ImageList& list) {
    Split split{name, images, {}, std::move(list.labels), std::move(list.label_sets)};
    for (size_t i = 0; i < split.labels.size(); ++i) split.ids.push_back(id++);
    return split;
  };
  dataset.train = part("train", lists[0]);
  dataset.val = part("val", lists[1]);
  dataset.test = part("test", lists[2]);
  dataset.digest = sha256(fmt::format("file_list\n{}{}\nsize {} channels {}\n", digests, images->digest(),
                                      dataset.height, dataset.channels));
  return dataset;
}

}  // namespace settrain
