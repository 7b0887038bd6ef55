#include "datasets/cifar100.h"

#include <fmt/format.h>

#include <filesystem>
#include <utility>
#include <vector>

#include "datasets/cifar100_file.h"
#include "datasets/cifar100_names.h"
#include "datasets/memory_images.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

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
                    "file again, or set data.verify: false to take it as it is",
                    path.string(), file.name, content.sha256, file.sha256));
  }
  return {std::make_shared<MemoryImages>(std::move(content.pixels), 32, 32, 3),
          std::vector<int64_t>(content.fine.begin(), content.fine.end()), content.sha256};
}

}  // namespace

config::Keys Cifar100Options::keys() {
  using config::key;
  return {
      key("root", &Cifar100Options::root, "${env:SETTRAIN_DATA:-data}/cifar-100-binary",
          "Folder with train.bin and test.bin of the binary version.")
          .not_empty()
          .free(),
      key("verify", &Cifar100Options::verify, true, "Refuse files whose digest is not that of the published ones."),
  };
}

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
                               .proof = {kTrain.name, kTest.name}}};
}

}  // namespace settrain
