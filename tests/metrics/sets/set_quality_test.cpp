#include "metrics/sets/set_quality.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/core/error.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

constexpr double kNoLevel = std::numeric_limits<double>::quiet_NaN();

// Sets of `classes` classes, from a list for each image.
at::Tensor sets_with(int64_t classes, const std::vector<std::vector<int64_t>>& sets) {
  at::Tensor result = at::zeros({static_cast<int64_t>(sets.size()), classes}, at::kBool);
  for (size_t i = 0; i < sets.size(); ++i) {
    for (const int64_t y : sets[i]) result[static_cast<int64_t>(i)][y] = true;
  }
  return result;
}

at::Tensor given_labels(const std::vector<int64_t>& labels) {
  return at::tensor(labels, at::kLong);
}

}  // namespace

TEST_CASE("the quality of six sets, by hand") {
  // Class 0 is covered in 2 of 3 images, class 1 in 0 of 1, class 2 in 2 of 2, class 3 has no image.
  const at::Tensor sets = sets_with(4, {{0}, {0, 1}, {1}, {}, {2}, {0, 1, 2, 3}});
  const SetQuality quality = set_quality(sets, given_labels({0, 0, 0, 1, 2, 2}), 0.8, {10, 20, 300, 500});
  CHECK(quality.images == 6);
  CHECK(quality.coverage == Approx(4.0 / 6));
  CHECK(quality.mean_size == Approx(9.0 / 6));
  CHECK(quality.median_size == 1);
  CHECK(quality.macro_coverage == Approx((2.0 / 3 + 0 + 1) / 3));
  CHECK(quality.shot_coverage[0] == Approx(2.0 / 3));
  CHECK(quality.shot_coverage[1] == 0);
  CHECK(quality.shot_coverage[2] == 1);
  CHECK(quality.below_half == Approx(1.0 / 3));
  CHECK(quality.undercoverage_gap == Approx((0.8 - 2.0 / 3 + 0.8 + 0) / 3));
  CHECK(quality.coverage_gap == Approx((0.8 - 2.0 / 3 + 0.8 + 0.2) / 3));
  // Sets of 0 or 1 class hold 2 of 4 labels, those of 2 or 3 one of one, those of 4 one of one.
  CHECK(quality.size_stratified_violation == Approx(0.3));
  CHECK(quality.empty == Approx(1.0 / 6));
  CHECK(quality.full == Approx(1.0 / 6));
  CHECK(quality.classes_without_images == 1);
  REQUIRE(quality.class_coverage.size() == 4);
  CHECK(quality.class_coverage[0] == Approx(2.0 / 3));
  CHECK(std::isnan(quality.class_coverage[3]));
}

TEST_CASE("the Wilson interval of 8 in 10 is that of its formula") {
  at::Tensor sets = at::zeros({10, 2}, at::kBool);
  sets.narrow(0, 0, 8).select(1, 0).fill_(true);
  const SetQuality quality = set_quality(sets, at::zeros({10}, at::kLong), 0.9, {});
  // (0.8 + 0.1920729) / 1.3841459 -+ 1.959964 sqrt(0.016 + 0.0096036) / 1.3841459
  CHECK(quality.interval[0] == Approx(0.490162).margin(1e-6));
  CHECK(quality.interval[1] == Approx(0.943318).margin(1e-6));
}

TEST_CASE("an even number of sets has the mean of the middle two as its median") {
  const at::Tensor labels = given_labels({0, 0, 0, 0});
  CHECK(set_quality(sets_with(4, {{0, 1, 2, 3}, {0}, {0, 1, 2, 3}, {0, 1}}), labels, 0.9, {}).median_size == 3);
  CHECK(set_quality(sets_with(4, {{}, {0}, {}, {0, 1}}), labels, 0.9, {}).median_size == 0.5);
}

TEST_CASE("empty sets cover nothing, full ones everything") {
  const at::Tensor labels = given_labels({0, 1, 1});
  const SetQuality empty = set_quality(at::zeros({3, 2}, at::kBool), labels, 0.9, {5, 5});
  CHECK(empty.coverage == 0);
  CHECK(empty.empty == 1);
  CHECK(empty.full == 0);
  CHECK(empty.below_half == 1);
  CHECK(empty.undercoverage_gap == Approx(0.9));
  CHECK(empty.interval[0] == Approx(0).margin(1e-12));
  CHECK(empty.interval[1] > 0);
  CHECK(std::isnan(empty.shot_coverage[1]));
  const SetQuality full = set_quality(at::ones({3, 2}, at::kBool), labels, 0.9, {5, 5});
  CHECK(full.coverage == 1);
  CHECK(full.full == 1);
  CHECK(full.mean_size == 2);
  CHECK(full.below_half == 0);
  CHECK(full.undercoverage_gap == 0);
  CHECK(full.coverage_gap == Approx(0.1));
}

TEST_CASE("a class that is covered in half of its images is not below half") {
  CHECK(set_quality(sets_with(2, {{0}, {1}}), given_labels({0, 0}), 0.9, {}).below_half == 0);
}

TEST_CASE("a rule without an error has no gaps") {
  const SetQuality quality = set_quality(sets_with(3, {{0}, {1}}), given_labels({0, 0}), kNoLevel, {});
  CHECK(quality.coverage == 0.5);
  CHECK(std::isnan(quality.undercoverage_gap));
  CHECK(std::isnan(quality.coverage_gap));
  CHECK(std::isnan(quality.size_stratified_violation));
  for (const double coverage : quality.shot_coverage) CHECK(std::isnan(coverage));
}

TEST_CASE("without images nothing is defined") {
  const SetQuality quality = set_quality(at::zeros({0, 3}, at::kBool), at::zeros({0}, at::kLong), 0.9, {1, 1, 1});
  CHECK(quality.images == 0);
  CHECK(quality.classes_without_images == 3);
  for (const double value : {quality.coverage, quality.interval[0], quality.mean_size, quality.median_size,
                             quality.macro_coverage, quality.below_half, quality.undercoverage_gap,
                             quality.coverage_gap, quality.size_stratified_violation, quality.empty, quality.full}) {
    CHECK(std::isnan(value));
  }
}

TEST_CASE("outcomes of images that repeat are those of their sets") {
  const at::Tensor sets = sets_with(3, {{0}, {1, 2}, {}}), labels = given_labels({0, 1, 2}),
                   drawn = given_labels({1, 1, 2});
  const SetQuality some = set_quality(outcomes_of(sets, labels).of(drawn), 0.9, {});
  CHECK(some.coverage == Approx(2.0 / 3));
  CHECK(some.mean_size == Approx(4.0 / 3));
  CHECK(some.class_coverage[1] == 1);
  CHECK(some.classes_without_images == 1);
}

TEST_CASE("labels and sets of different numbers of images are refused") {
  CHECK_THROWS_AS(outcomes_of(at::zeros({3, 2}, at::kBool), given_labels({0, 1})), ShapeError);
}

TEST_CASE("sets have nodes, their depth, and coverage by rank where there is a taxonomy") {
  const Taxonomy tree = make_taxonomy({"species", "genus", "family"}, {{"A", "X"}, {"A", "X"}, {"B", "X"}, {"", "Y"}});
  const at::Tensor sets = at::tensor({1, 1, 0, 0,   // genus A
                                      1, 0, 1, 0,   // two species
                                      1, 1, 1, 1,   // all
                                      0, 0, 0, 0})  // none
                              .view({4, 4})
                              .to(at::kBool);
  const at::Tensor labels = at::tensor({2, 1, 3, 0}, at::kLong);
  const SetQuality quality = set_quality(sets, labels, 0.9, {}, tree);
  CHECK(quality.mean_nodes == Approx((1 + 2 + 1) / 3.0));
  CHECK(quality.mean_depth == Approx((2 + 3 + 0) / 3.0));  // a genus, two species, the root
  CHECK(quality.rank_coverage == std::vector<double>{0.5, 0.75});
  const SetQuality without = set_quality(sets, labels, 0.9, {});
  CHECK(std::isnan(without.mean_nodes));
  CHECK(without.rank_coverage.empty());
  const SetQuality some = set_quality(outcomes_of(sets, labels, tree).of(at::tensor({1, 1}, at::kLong)), 0.9, {});
  CHECK(some.mean_nodes == Approx(2));
  CHECK(some.rank_coverage == std::vector<double>{1, 1});
}
