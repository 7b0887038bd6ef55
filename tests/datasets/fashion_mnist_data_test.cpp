#include <filesystem>
#include <numeric>

#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

using namespace settrain;

namespace {

const std::string kRoot = "/usr/share/datasets/fashion-mnist";

}  // namespace

TEST_CASE("the real Fashion-MNIST", "[data]") {
  SKIP_UNLESS(std::filesystem::exists(kRoot), "Debian's package dataset-fashion-mnist is not installed");
  const Dataset dataset = test::load_dataset("fashion_mnist", {"root=" + kRoot, "split=balanced"});
  CHECK(count_classes(dataset.train, 10) == std::vector<int64_t>(10, 5500));
  CHECK(count_classes(dataset.val, 10) == std::vector<int64_t>(10, 500));
  CHECK(count_classes(dataset.test, 10) == std::vector<int64_t>(10, 1000));
  const std::vector<int64_t> first(dataset.test.labels.begin(), dataset.test.labels.begin() + 10);
  CHECK(first == std::vector<int64_t>{9, 2, 1, 1, 6, 1, 4, 6, 5, 7});
  // The first training image is an ankle boot; the sum of its pixels was computed from the file.
  Image image;
  dataset.train.images->read(0, image);
  CHECK(std::accumulate(image.pixels.begin(), image.pixels.end(), 0) == 76247);
}
