#include "datasets/calibration_split.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "src/core/error.h"
#include "tests/support/builtin_datasets.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;

namespace {

Dataset made(int64_t val_size) {
  return test::load_dataset("synthetic", {"num_classes=10", "train_size=20", "val_size=" + std::to_string(val_size),
                                          "test_size=5", "labels_per_image=2", "seed=7"});
}

// Everything that is known of sample i of a split.
auto known_of(const Dataset& dataset, const Split& split, size_t place, size_t i) {
  const auto labels = split.label_sets.of(static_cast<int64_t>(i));
  const auto row = dataset.truth->probabilities[place].begin() + static_cast<std::ptrdiff_t>(10 * i);
  return std::tuple(split.ids[i], split.labels[i], std::vector(labels.begin(), labels.end()),
                    std::vector(row, row + 10));
}

}  // namespace

TEST_CASE(
    "calibration and validation images are the former validation images, each once, with all that is known of them") {
  const Dataset before = made(200);
  Dataset after = before;
  hold_out_calibration({0.3, 1}, after);
  CHECK(after.calibration.size() == 60);
  CHECK(after.val.size() == 140);
  CHECK(after.calibration.name == "calibration");
  CHECK(after.val.name == "val");
  CHECK(&split_named(after, "calibration") == &after.calibration);
  std::vector known{known_of(before, before.val, 1, 0)};
  for (size_t i = 1; i < 200; ++i) known.push_back(known_of(before, before.val, 1, i));
  std::vector parts{known_of(after, after.val, 1, 0)};
  for (size_t i = 1; i < 140; ++i) parts.push_back(known_of(after, after.val, 1, i));
  for (size_t i = 0; i < 60; ++i) parts.push_back(known_of(after, after.calibration, 3, i));
  std::sort(known.begin(), known.end());
  std::sort(parts.begin(), parts.end());
  CHECK(parts == known);
  CHECK(after.train.ids == before.train.ids);
  CHECK(after.test.ids == before.test.ids);
  CHECK(after.truth->probabilities[2] == before.truth->probabilities[2]);
  CHECK(after.digest != before.digest);
}

TEST_CASE("which images calibrate follows from the seed alone") {
  const auto ids = [](int64_t seed) {
    Dataset dataset = made(200);
    hold_out_calibration({0.5, seed}, dataset);
    return dataset.calibration.ids;
  };
  CHECK(ids(3) == ids(3));
  CHECK(ids(3) != ids(4));
}

TEST_CASE("every image calibrates as often as every other") {
  std::vector<double> times(20);
  const Dataset before = made(20);
  for (int64_t seed = 0; seed < 2000; ++seed) {
    Dataset dataset = before;
    hold_out_calibration({0.25, seed}, dataset);
    for (const int64_t id : dataset.calibration.ids) ++times[static_cast<size_t>(id - 20)];
  }
  // Each 500 times, with a standard deviation of 19.4.
  for (const double count : times) CHECK(std::abs(count - 500) < 5 * 19.4);
}

TEST_CASE("a share of 0 leaves everything as it was") {
  const Dataset before = made(50);
  Dataset after = before;
  hold_out_calibration({0, 9}, after);
  CHECK(after.val.ids == before.val.ids);
  CHECK(after.calibration.size() == 0);
  CHECK(after.digest == before.digest);
  CHECK(after.truth == before.truth);
  CHECK(split_names(after) == std::vector<std::string>{"train", "val", "test"});
}

TEST_CASE("a share that leaves nothing on one side is refused") {
  const auto error_of = [](int64_t val_size, double share) {
    Dataset dataset = made(val_size);
    try {
      hold_out_calibration({share, 1}, dataset);
    } catch (const KeyError& error) {
      CHECK(error.path() == "data.calibration_share");
      return error.message();
    }
    return std::string();
  };
  CHECK_THAT(error_of(0, 0.5), Contains("no validation images"));
  CHECK_THAT(error_of(10, 0.01), Contains("none to calibrate on"));
  CHECK_THAT(error_of(10, 0.99), Contains("none to validate on"));
  CHECK(error_of(2, 0.5).empty());
}
