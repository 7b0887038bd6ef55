#include "datasets/long_tail.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

// `counts[j]` training images of class j, the classes mixed.
Dataset with_counts(std::vector<int64_t> counts) {
  Dataset dataset;
  dataset.class_names.resize(counts.size());
  dataset.digest = "d";
  for (int64_t id = 100; *std::max_element(counts.begin(), counts.end()) > 0; ++id) {
    for (size_t j = 0; j < counts.size(); ++j) {
      if (counts[j]-- <= 0) continue;
      dataset.train.ids.push_back(id * 10 + static_cast<int64_t>(j));
      dataset.train.labels.push_back(static_cast<int64_t>(j));
    }
  }
  return dataset;
}

std::vector<int64_t> counts_of(const Dataset& dataset) {
  std::vector<int64_t> counts(dataset.class_names.size());
  for (const int64_t label : dataset.train.labels) ++counts[static_cast<size_t>(label)];
  return counts;
}

}  // namespace

TEST_CASE("classes thin out on an exponential curve") {
  Dataset dataset = with_counts({100, 100, 100});
  apply_long_tail({100, 1}, dataset);
  CHECK(counts_of(dataset) == std::vector<int64_t>{100, 10, 1});
  CHECK(dataset.digest != "d");
  // Each sample has its own label still, and comes once.
  for (size_t i = 0; i < dataset.train.ids.size(); ++i) CHECK(dataset.train.ids[i] % 10 == dataset.train.labels[i]);
  CHECK(std::set<int64_t>(dataset.train.ids.begin(), dataset.train.ids.end()).size() == 111);
}

TEST_CASE("rounding down gives the published size of long-tailed CIFAR-100") {
  const auto total = [](const char* rounding) {
    const auto counts = long_tail_counts({100, 1, rounding}, std::vector<int64_t>(100, 500));
    CHECK(counts.front() == 500);
    CHECK(counts.back() == 5);
    return std::accumulate(counts.begin(), counts.end(), int64_t{0});
  };
  CHECK(total("down") == 10847);
  CHECK(total("nearest") == 10899);
  Dataset nearest = with_counts({100, 100, 100}), down = with_counts({100, 100, 100});
  apply_long_tail({30, 1, "nearest"}, nearest);
  apply_long_tail({30, 1, "down"}, down);
  CHECK(nearest.digest != down.digest);
}

TEST_CASE("a class keeps at least one image, and no more than it has") {
  Dataset dataset = with_counts({1000, 5, 1000, 7});
  apply_long_tail({1e6, 1}, dataset);
  CHECK(counts_of(dataset) == std::vector<int64_t>{1000, 5, 1, 1});
}

TEST_CASE("which images stay is a function of the seed") {
  Dataset a = with_counts({50, 50}), b = with_counts({50, 50}), c = with_counts({50, 50});
  apply_long_tail({5, 1}, a);
  apply_long_tail({5, 1}, b);
  apply_long_tail({5, 2}, c);
  CHECK(a.train.ids == b.train.ids);
  CHECK(a.digest == b.digest);
  CHECK(a.train.ids != c.train.ids);
}

TEST_CASE("an imbalance of 1 changes nothing, and known truth is refused") {
  Dataset dataset = with_counts({5, 3});
  const Split before = dataset.train;
  apply_long_tail({1, 1}, dataset);
  CHECK(dataset.train.ids == before.ids);
  CHECK(dataset.digest == "d");
  dataset.truth = std::make_shared<KnownTruth>();
  CHECK_THROWS_AS(apply_long_tail({2, 1}, dataset), KeyError);
}

TEST_CASE("all labels of a sample stay with it") {
  Dataset dataset = with_counts({3, 3});
  dataset.train.label_sets.offsets = {0};
  for (const int64_t label : dataset.train.labels) {
    const std::vector<int64_t> set{label, 1 - label};
    dataset.train.label_sets.add(set);
  }
  apply_long_tail({3, 1}, dataset);
  REQUIRE(counts_of(dataset) == std::vector<int64_t>{3, 1});
  for (int64_t i = 0; i < dataset.train.size(); ++i) {
    const auto set = dataset.train.label_sets.of(i);
    REQUIRE(set.size() == 2);
    CHECK(set[0] == dataset.train.labels[static_cast<size_t>(i)]);
  }
}

}  // namespace settrain
