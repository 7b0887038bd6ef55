#include "datasets/fashion_mnist.h"

#include <fmt/format.h>

#include <filesystem>
#include <iterator>
#include <utility>
#include <vector>

#include "datasets/idx_file.h"
#include "datasets/memory_images.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr int64_t kSide = 28;
constexpr const char* kClasses[] = {"T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
                                    "Sandal",      "Shirt",   "Sneaker",  "Bag",   "Ankle boot"};
constexpr const char* kFashionSuperclasses[] = {"tops", "shoes", "trousers", "bags"};
constexpr int64_t kSuperclassOf[] = {0, 2, 0, 0, 0, 1, 0, 1, 3, 1};

// One of the four files: its name without .gz, and the SHA-256 of its uncompressed content as published.
struct IdxFileName {
  const char* name;
  const char* sha256;
};
constexpr IdxFileName kTrainImages = {"train-images-idx3-ubyte",
                                      "c59f468a2f672dc815687fe0f83887768d799fd8a3f3276145d20f83aa44d888"};
constexpr IdxFileName kTrainLabels = {"train-labels-idx1-ubyte",
                                      "bad3541b69d912435c50bb6ba87bec294ff4f6a2e1246121d8633921760443d9"};
constexpr IdxFileName kTestImages = {"t10k-images-idx3-ubyte",
                                     "5b4141f0afbad91edebe8549f8fcffe087ea10ca49f1dbef5c9a5cd8815ce37b"};
constexpr IdxFileName kTestLabels = {"t10k-labels-idx1-ubyte",
                                     "0402a96d92fd2663957122ceb108a494c5af83dab82d92729df917d7dec38c34"};

std::filesystem::path find(const FashionMnistOptions& options, const IdxFileName& file) {
  for (const char* ending : {".gz", ""}) {
    const std::filesystem::path path = std::filesystem::path(options.root) / (std::string(file.name) + ending);
    if (std::filesystem::exists(path)) return path;
  }
  throw DataError(
      fmt::format("fashion_mnist: no file {}.gz, and none without .gz, in '{}' (data.root). Install Debian's package "
                  "dataset-fashion-mnist, or set data.root to a folder with the four files of "
                  "github.com/zalandoresearch/fashion-mnist",
                  file.name, options.root));
}

struct FoundFile {
  std::string path;
  IdxArray array;
};

FoundFile read_file(const FashionMnistOptions& options, const IdxFileName& file, int rank) {
  FoundFile found{find(options, file).string(), {}};
  found.array = read_idx(found.path, rank);
  if (options.verify && found.array.sha256 != file.sha256) {
    throw DataError(fmt::format(
        "'{}': not Fashion-MNIST's {} as published: SHA-256 of the uncompressed content is {}, expected {}. "
        "Get the file again, or set data.verify: false to take it as it is",
        found.path, file.name, found.array.sha256, file.sha256));
  }
  return found;
}

struct FashionPart {
  std::shared_ptr<const ImageSource> images;
  std::vector<int64_t> labels;
  std::string digests;  // of its two files, a line each
};

FashionPart read_fashion_part(const FashionMnistOptions& options, const IdxFileName& image_file,
                              const IdxFileName& label_file) {
  auto [image_path, images] = read_file(options, image_file, 3);
  const auto [label_path, labels] = read_file(options, label_file, 1);
  if (images.sizes[1] != kSide || images.sizes[2] != kSide) {
    throw DataError(fmt::format("'{}': expected images of {}x{} pixels, got {}x{}", image_path, kSide, kSide,
                                images.sizes[1], images.sizes[2]));
  }
  if (images.sizes[0] != labels.sizes[0] || labels.sizes[0] == 0) {
    throw DataError(fmt::format("'{}': expected one label for each of the {} images in '{}', and at least one; got {}",
                                label_path, images.sizes[0], image_path, labels.sizes[0]));
  }
  for (size_t i = 0; i < labels.values.size(); ++i) {
    if (labels.values[i] >= std::size(kClasses)) {
      throw DataError(fmt::format("'{}': label {} is {}, expected 0 to {}", label_path, i, labels.values[i],
                                  std::size(kClasses) - 1));
    }
  }
  return {std::make_shared<MemoryImages>(std::move(images.values), kSide, kSide, 1),
          std::vector<int64_t>(labels.values.begin(), labels.values.end()),
          images.sha256 + "\n" + labels.sha256 + "\n"};
}

}  // namespace

config::Keys FashionMnistOptions::keys() {
  using config::key;
  return {
      key("root", &FashionMnistOptions::root, "/usr/share/datasets/fashion-mnist",
          "Folder with the four IDX files, compressed or not; the default is where Debian's package "
          "dataset-fashion-mnist has them.")
          .not_empty()
          .free(),
      key("verify", &FashionMnistOptions::verify, true, "Refuse files whose digest is not that of the published ones."),
  };
}

Dataset load_fashion_mnist(const FashionMnistOptions& options, const SplitOptions& split) {
  FashionPart train = read_fashion_part(options, kTrainImages, kTrainLabels);
  FashionPart test = read_fashion_part(options, kTestImages, kTestLabels);
  HeldOut held_out = hold_out(train.labels, std::ssize(kClasses), split);

  Dataset dataset;
  dataset.name = "fashion_mnist";
  dataset.class_names.assign(std::begin(kClasses), std::end(kClasses));
  dataset.superclass_names.assign(std::begin(kFashionSuperclasses), std::end(kFashionSuperclasses));
  dataset.superclass_of.assign(std::begin(kSuperclassOf), std::end(kSuperclassOf));
  dataset.channels = 1;
  dataset.height = dataset.width = kSide;
  dataset.normalisation = "fashion_mnist";
  dataset.train = make_split("train", train.images, std::move(held_out.train), train.labels);
  dataset.val = make_split("val", train.images, std::move(held_out.val), train.labels);
  dataset.test = make_split("test", test.images, std::move(test.labels));
  dataset.digest = sha256("fashion_mnist\n" + train.digests + test.digests + split.recipe());
  return dataset;
}

}  // namespace settrain
