// The recorded statistics against the images that they were computed from.
#include <array>
#include <cmath>
#include <filesystem>

#include "src/loader/data_options.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

using namespace settrain;

namespace {

void check_statistics(const Dataset& dataset, const std::string& name) {
  const auto channels = static_cast<size_t>(dataset.channels);
  std::vector<std::array<int64_t, 256>> histograms(channels);
  Image image;
  for (int64_t id = 0; id < dataset.train.images->size(); ++id) {
    dataset.train.images->read(id, image);
    for (size_t i = 0; i < image.pixels.size(); ++i) ++histograms[i % channels][image.pixels[i]];
  }
  const Normalisation recorded = normalisation_for(test::builtin_datasets(), name, dataset);
  for (size_t c = 0; c < channels; ++c) {
    double count = 0, sum = 0, squares = 0;
    for (size_t value = 0; value < 256; ++value) {
      const auto times = static_cast<double>(histograms[c][value]);
      const double x = static_cast<double>(value) / 255;
      count += times;
      sum += times * x;
      squares += times * x * x;
    }
    const double mean = sum / count;
    CHECK(std::abs(recorded.mean[c] - mean) < 1e-7);
    CHECK(std::abs(recorded.std[c] - std::sqrt(squares / count - mean * mean)) < 1e-7);
  }
}

}  // namespace

TEST_CASE("Fashion-MNIST's statistics", "[data]") {
  const std::string root = "/usr/share/datasets/fashion-mnist";
  SKIP_UNLESS(std::filesystem::exists(root), "Debian's package dataset-fashion-mnist is not installed");
  check_statistics(test::load_dataset("fashion_mnist", {"root=" + root}), "fashion_mnist");
}

TEST_CASE("CIFAR-100's statistics", "[data]") {
  const std::string root = test::environment("SETTRAIN_TEST_DATA") + "/cifar-100-binary";
  SKIP_UNLESS(std::filesystem::exists(root), "SETTRAIN_TEST_DATA has no cifar-100-binary");
  check_statistics(test::load_dataset("cifar100", {"root=" + root}), "cifar100");
}
