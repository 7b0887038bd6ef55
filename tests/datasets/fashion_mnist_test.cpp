#include <string>
#include <vector>

#include "tests/datasets/idx_test_files.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

constexpr uint32_t kTrain = 40, kTest = 10;

std::string labels_in_turns(uint32_t n) {
  std::string labels;
  for (uint32_t i = 0; i < n; ++i) labels += static_cast<char>(i % 10);
  return labels;
}

// Images whose every pixel is the image's number.
std::string numbered_images(uint32_t n) {
  std::string pixels;
  for (uint32_t i = 0; i < n; ++i) pixels += std::string(28 * 28, static_cast<char>(i));
  return pixels;
}

// A small data set in the format of the real one: two files compressed, two not.
void write_small(const test::TemporaryFolder& folder) {
  folder.write("train-images-idx3-ubyte.gz", test::gzip(test::idx_bytes({kTrain, 28, 28}, numbered_images(kTrain))));
  folder.write("train-labels-idx1-ubyte", test::idx_bytes({kTrain}, labels_in_turns(kTrain)));
  folder.write("t10k-images-idx3-ubyte", test::idx_bytes({kTest, 28, 28}, numbered_images(kTest)));
  folder.write("t10k-labels-idx1-ubyte.gz", test::gzip(test::idx_bytes({kTest}, labels_in_turns(kTest))));
}

Dataset load(const test::TemporaryFolder& folder, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings{"root=" + folder.path().string(), "verify=false", "val_size=10", "split=balanced"};
  settings.insert(settings.end(), more.begin(), more.end());
  return test::load_dataset("fashion_mnist", settings);
}

}  // namespace

TEST_CASE("a folder of IDX files becomes a data set") {
  const test::TemporaryFolder folder;
  write_small(folder);
  const Dataset dataset = load(folder);
  CHECK(dataset.num_classes() == 10);
  CHECK(dataset.train.size() == 30);
  CHECK(dataset.val.size() == 10);
  CHECK(dataset.test.size() == 10);
  CHECK(count_classes(dataset.val, 10) == std::vector<int64_t>(10, 1));
  Image image;
  for (const Split* split : {&dataset.train, &dataset.val, &dataset.test}) {
    for (size_t i = 0; i < split->ids.size(); ++i) {
      split->images->read(split->ids[i], image);
      CHECK(image.pixels == std::vector<uint8_t>(28 * 28, static_cast<uint8_t>(split->ids[i])));
      CHECK(split->labels[i] == split->ids[i] % 10);
    }
  }
}

TEST_CASE("the digest tells data and splits apart") {
  const test::TemporaryFolder folder;
  write_small(folder);
  const std::string digest = load(folder).digest;
  CHECK(digest == load(folder).digest);
  CHECK(digest != load(folder, {"split_seed=1"}).digest);
  folder.write("t10k-labels-idx1-ubyte.gz", test::idx_bytes({kTest}, std::string(kTest, '\1')));
  CHECK(digest != load(folder).digest);
}

TEST_CASE("a subset of the training images is other data, and all of them what they were") {
  const test::TemporaryFolder folder;
  write_small(folder);
  const Dataset all = load(folder);
  const Dataset twenty = load(folder, {"train_size=20"});
  CHECK(count_classes(twenty.train, 10) == std::vector<int64_t>(10, 2));
  CHECK(twenty.val.ids == all.val.ids);
  CHECK(twenty.digest != all.digest);
  CHECK(all.digest == "63efabd5569e8a698ceedb0837b4c10c4008cc930d8b39958c651b239bec0d43");
}

TEST_CASE("the superclasses are those that the entry documents") {
  const test::TemporaryFolder folder;
  write_small(folder);
  const Dataset dataset = load(folder);
  std::string tops, shoes;
  for (int64_t c = 0; c < 10; ++c) {
    const std::string& superclass =
        dataset.superclass_names[static_cast<size_t>(dataset.superclass_of[static_cast<size_t>(c)])];
    if (superclass == "tops") tops += dataset.class_names[static_cast<size_t>(c)] + " ";
    if (superclass == "shoes") shoes += dataset.class_names[static_cast<size_t>(c)] + " ";
  }
  CHECK(tops == "T-shirt/top Pullover Dress Coat Shirt ");
  CHECK(shoes == "Sandal Sneaker Ankle boot ");
}

TEST_CASE("files that do not belong together are refused") {
  const test::TemporaryFolder folder;
  CHECK_THROWS_WITH(load(folder), Contains("train-images-idx3-ubyte.gz") && Contains("dataset-fashion-mnist"));
  write_small(folder);
  CHECK_THROWS_WITH(load(folder, {"verify=true"}), Contains("SHA-256") && Contains("data.verify: false"));

  folder.write("train-labels-idx1-ubyte", test::idx_bytes({3}, labels_in_turns(3)));
  CHECK_THROWS_WITH(load(folder), Contains("one label for each of the 40 images") && Contains("got 3"));
  folder.write("train-labels-idx1-ubyte", test::idx_bytes({kTrain}, std::string(kTrain, '\x0A')));
  CHECK_THROWS_WITH(load(folder), Contains("label 0 is 10, expected 0 to 9"));
  write_small(folder);
  folder.write("t10k-images-idx3-ubyte", test::idx_bytes({kTest, 14, 56}, numbered_images(kTest)));
  CHECK_THROWS_WITH(load(folder), Contains("expected images of 28x28 pixels, got 14x56"));
}
