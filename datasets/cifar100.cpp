// CIFAR-100: Krizhevsky, "Learning multiple layers of features from tiny images" (2009).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "datasets/dataset.h"
#include "datasets/entries.h"
#include "datasets/readers.h"
#include "datasets/registry.h"
#include "datasets/validation_split.h"
#include "src/config/key.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr int64_t kPlane = 32 * 32;
constexpr int64_t kRecord = 2 + 3 * kPlane;

struct Superclass {
  const char* name;
  std::array<const char*, 5> classes;
};

constexpr Superclass kCifarSuperclasses[] = {
    {"aquatic_mammals", {"beaver", "dolphin", "otter", "seal", "whale"}},
    {"fish", {"aquarium_fish", "flatfish", "ray", "shark", "trout"}},
    {"flowers", {"orchid", "poppy", "rose", "sunflower", "tulip"}},
    {"food_containers", {"bottle", "bowl", "can", "cup", "plate"}},
    {"fruit_and_vegetables", {"apple", "mushroom", "orange", "pear", "sweet_pepper"}},
    {"household_electrical_devices", {"clock", "keyboard", "lamp", "telephone", "television"}},
    {"household_furniture", {"bed", "chair", "couch", "table", "wardrobe"}},
    {"insects", {"bee", "beetle", "butterfly", "caterpillar", "cockroach"}},
    {"large_carnivores", {"bear", "leopard", "lion", "tiger", "wolf"}},
    {"large_man-made_outdoor_things", {"bridge", "castle", "house", "road", "skyscraper"}},
    {"large_natural_outdoor_scenes", {"cloud", "forest", "mountain", "plain", "sea"}},
    {"large_omnivores_and_herbivores", {"camel", "cattle", "chimpanzee", "elephant", "kangaroo"}},
    {"medium_mammals", {"fox", "porcupine", "possum", "raccoon", "skunk"}},
    {"non-insect_invertebrates", {"crab", "lobster", "snail", "spider", "worm"}},
    {"people", {"baby", "boy", "girl", "man", "woman"}},
    {"reptiles", {"crocodile", "dinosaur", "lizard", "snake", "turtle"}},
    {"small_mammals", {"hamster", "mouse", "rabbit", "shrew", "squirrel"}},
    {"trees", {"maple_tree", "oak_tree", "palm_tree", "pine_tree", "willow_tree"}},
    {"vehicles_1", {"bicycle", "bus", "motorcycle", "pickup_truck", "train"}},
    {"vehicles_2", {"lawn_mower", "rocket", "streetcar", "tank", "tractor"}},
};

Cifar100Names make_names() {
  Cifar100Names names;
  for (const Superclass& superclass : kCifarSuperclasses) {
    names.coarse.push_back(superclass.name);
    names.fine.insert(names.fine.end(), superclass.classes.begin(), superclass.classes.end());
  }
  std::sort(names.fine.begin(), names.fine.end());
  names.coarse_of.resize(names.fine.size());
  for (size_t coarse = 0; coarse < std::size(kCifarSuperclasses); ++coarse) {
    for (const char* name : kCifarSuperclasses[coarse].classes) {
      const auto fine = std::lower_bound(names.fine.begin(), names.fine.end(), name) - names.fine.begin();
      names.coarse_of[static_cast<size_t>(fine)] = static_cast<int64_t>(coarse);
    }
  }
  return names;
}

}  // namespace

const Cifar100Names& cifar100_names() {
  static const Cifar100Names names = make_names();
  return names;
}

Cifar100File read_cifar100_file(const std::filesystem::path& file, int64_t records) {
  std::error_code no_size;
  const auto size = static_cast<int64_t>(std::filesystem::file_size(file, no_size));
  std::ifstream stream(file, std::ios::binary);
  if (no_size || !stream) throw DataError(fmt::format("cannot open '{}'", file.string()));
  if (size != records * kRecord) {
    throw DataError(fmt::format("'{}': expected {} records of {} bytes, that is {} bytes; got {}. Get the file again",
                                file.string(), records, kRecord, records * kRecord, size));
  }
  Cifar100File content;
  content.pixels.resize(static_cast<size_t>(records * 3 * kPlane));
  uint8_t* pixel = content.pixels.data();
  Sha256 sha;
  std::array<uint8_t, kRecord> record;
  for (int64_t i = 0; i < records; ++i) {
    if (!stream.read(reinterpret_cast<char*>(record.data()), kRecord)) {
      throw DataError(fmt::format("'{}': cannot read record {}", file.string(), i));
    }
    sha.add(record);
    if (record[0] >= 20 || record[1] >= 100) {
      throw DataError(
          fmt::format("'{}': record {} has coarse label {} and fine label {}; expected less than 20 and 100. "
                      "Is this the binary version of CIFAR-100?",
                      file.string(), i, record[0], record[1]));
    }
    content.coarse.push_back(record[0]);
    content.fine.push_back(record[1]);
    const uint8_t* planes = record.data() + 2;
    for (int64_t p = 0; p < kPlane; ++p) {
      for (int64_t channel = 0; channel < 3; ++channel) *pixel++ = planes[channel * kPlane + p];
    }
  }
  content.sha256 = sha.hex();
  return content;
}

namespace {

struct Cifar100Options {
  std::string root;
  bool verify = false;

  static config::Keys keys();
};

// One of the two files: its name, its records, and its SHA-256 as published.
struct CifarFile {
  const char* name;
  int64_t records;
  const char* sha256;
};
constexpr CifarFile kTrain = {"train.bin", 50000, "f31298fc616915fa142368359df1c4ca2ae984d6915ca468b998a5ec6aeebf29"};
constexpr CifarFile kTest = {"test.bin", 10000, "d8b1e6b7b3bee4020055f0699b111f60b1af1e262aeb93a0b659061746f8224a"};

struct CifarPart {
  std::shared_ptr<const ImageSource> images;
  std::vector<int64_t> labels;
  std::string sha256;
};

CifarPart read_cifar_part(const Cifar100Options& options, const CifarFile& file) {
  const std::filesystem::path path = std::filesystem::path(options.root) / file.name;
  if (!std::filesystem::exists(path)) {
    throw DataError(fmt::format(
        "cifar100: no file {} in '{}' (data.root). Unpack cifar-100-binary.tar.gz of "
        "www.cs.toronto.edu/~kriz/cifar.html, and set data.root to the folder with its train.bin and test.bin",
        file.name, options.root));
  }
  Cifar100File content = read_cifar100_file(path, file.records);
  const Cifar100Names& names = cifar100_names();
  for (size_t i = 0; i < content.fine.size(); ++i) {
    const auto expected = static_cast<size_t>(names.coarse_of[content.fine[i]]);
    if (content.coarse[i] != expected) {
      throw DataError(fmt::format(
          "'{}': record {} has fine label {} ({}) and coarse label {} ({}), expected {} ({}). Get the file again",
          path.string(), i, content.fine[i], names.fine[content.fine[i]], content.coarse[i],
          names.coarse[content.coarse[i]], expected, names.coarse[expected]));
    }
  }
  if (options.verify && content.sha256 != file.sha256) {
    throw DataError(
        fmt::format("'{}': has the structure of CIFAR-100's {}, but other content: SHA-256 is {}, expected {}. Get the "
                    "file again, or set data.verify: false to use it as it is",
                    path.string(), file.name, content.sha256, file.sha256));
  }
  return {std::make_shared<MemoryImages>(std::move(content.pixels), 32, 32, 3, content.sha256),
          std::vector<int64_t>(content.fine.begin(), content.fine.end()), content.sha256};
}

config::Keys Cifar100Options::keys() {
  using config::key;
  return {
      key("root", &Cifar100Options::root, "${env:SETTRAIN_DATA:-data}/cifar-100-binary",
          "Folder with train.bin and test.bin of the binary version.")
          .not_empty()
          .free(),
      key("verify", &Cifar100Options::verify, true, "Refuse files whose digest differs from the published one."),
  };
}

// 50,000 training and 10,000 test images, RGB, 32x32, in 100 balanced classes of 20 superclasses, from the binary
// version's train.bin and test.bin.
//
// Throws DataError where a file is missing, has a wrong size, has a label out of range or in the wrong superclass or,
// with `verify`, does not have the published digest.
Dataset load_cifar100(const Cifar100Options& options, const SplitOptions& split) {
  CifarPart train = read_cifar_part(options, kTrain);
  CifarPart test = read_cifar_part(options, kTest);
  const Cifar100Names& names = cifar100_names();
  HeldOut held_out = hold_out(train.labels, static_cast<int64_t>(names.fine.size()), split);

  Dataset dataset;
  dataset.name = "cifar100";
  dataset.class_names = names.fine;
  dataset.superclass_names = names.coarse;
  dataset.superclass_of = names.coarse_of;
  dataset.channels = 3;
  dataset.height = dataset.width = 32;
  dataset.normalisation = "cifar10";  // as in the papers' experiments
  dataset.train = make_split("train", train.images, std::move(held_out.train), train.labels);
  dataset.val = make_split("val", train.images, std::move(held_out.val), train.labels);
  dataset.test = make_split("test", test.images, std::move(test.labels));
  dataset.digest = sha256("cifar100\n" + train.sha256 + "\n" + test.sha256 + "\n" + split.recipe());
  return dataset;
}

}  // namespace

DatasetEntry cifar100_entry() {
  return {.name = "cifar100",
          .help =
              "CIFAR-100 (Krizhevsky 2009): 60,000 colour images, 32x32, 100 classes in 20 superclasses. Its usual "
              "normalisation is CIFAR-10's, as in the papers' experiments.",
          .keys = config::joined(Cifar100Options::keys(), SplitOptions::keys()),
          .make =
              [](const config::Config& config) {
                return load_cifar100(config.read<Cifar100Options>("data"), config.read<SplitOptions>("data"));
              },
          .facts =
              [](const config::Config& config) {
                return held_out_facts({.classes = 100, .train = kTrain.records, .test = kTest.records, .size = 32},
                                      config.read<SplitOptions>("data"));
              },
          .statistics =
              {// The rounded values that the papers' experiments use.
               {"cifar10", {{125.3F / 255, 123.0F / 255, 113.9F / 255}, {63.0F / 255, 62.1F / 255, 66.7F / 255}}},
               // Mean and standard deviation, per channel, over all pixels of all training images of the
               // published files (validation images included), in float64.
               {"cifar100", {{0.50707516F, 0.48654887F, 0.44091784F}, {0.26733429F, 0.25643846F, 0.27615047F}}}},
          // MD5: the table of www.cs.toronto.edu/~kriz/cifar.html.
          .download = Download{.name = "cifar100",
                               .page = "https://www.cs.toronto.edu/~kriz/cifar.html (binary version)",
                               .licence = "none stated; cite Krizhevsky, 2009",
                               .files = {{"cifar-100-binary.tar.gz",
                                          "https://www.cs.toronto.edu/~kriz/cifar-100-binary.tar.gz",
                                          168513733,
                                          {Checksum::Kind::kMd5, "03b5dce01913d631647c71ecec9e9cb8"}}},
                               .archive = Archive::kTarGz,
                               .folder = "cifar-100-binary",
                               .proof = {kTrain.name, kTest.name}},
          .superclasses = [](const config::Config&) { return cifar100_names().coarse; }};
}

}  // namespace settrain
