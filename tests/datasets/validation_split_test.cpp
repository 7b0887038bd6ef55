#include "datasets/validation_split.h"

#include <algorithm>
#include <string>
#include <vector>

#include "src/core/error.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

// 10 labels of each of 6 classes, in turns.
std::vector<int64_t> labels_in_turns() {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 60; ++i) labels.push_back(i % 6);
  return labels;
}

std::vector<int64_t> counts_of(const std::vector<int64_t>& samples) {
  std::vector<int64_t> counts(6);
  for (const int64_t i : samples) ++counts[static_cast<size_t>(i % 6)];
  return counts;
}

bool includes(const std::vector<int64_t>& larger, const std::vector<int64_t>& smaller) {
  return std::includes(larger.begin(), larger.end(), smaller.begin(), smaller.end());
}

std::vector<int64_t> together(const HeldOut& held_out) {
  std::vector<int64_t> all = held_out.train;
  all.insert(all.end(), held_out.val.begin(), held_out.val.end());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("a split is disjoint and complete") {
  for (const char* kind : {"uniform", "balanced"}) {
    const HeldOut held_out = hold_out(labels_in_turns(), 6, {12, kind, 1234});
    CHECK(held_out.val.size() == 12);
    CHECK(std::is_sorted(held_out.train.begin(), held_out.train.end()));
    CHECK(std::is_sorted(held_out.val.begin(), held_out.val.end()));
    const std::vector<int64_t> all = together(held_out);
    REQUIRE(all.size() == 60);
    for (int64_t i = 0; i < 60; ++i) CHECK(all[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("a balanced split takes equally many of every class") {
  CHECK(counts_of(hold_out(labels_in_turns(), 6, {18, "balanced", 1}).val) == std::vector<int64_t>(6, 3));
}

TEST_CASE("a split follows its seed alone") {
  for (const char* kind : {"uniform", "balanced"}) {
    const auto val = hold_out(labels_in_turns(), 6, {12, kind, 1234}).val;
    CHECK(val == hold_out(labels_in_turns(), 6, {12, kind, 1234}).val);
    CHECK(val != hold_out(labels_in_turns(), 6, {12, kind, 1235}).val);
  }
}

TEST_CASE("a split that cannot be drawn is refused") {
  using Catch::Contains;
  CHECK_THROWS_WITH(hold_out(labels_in_turns(), 6, {60, "uniform", 1}),
                    Contains("data.val_size: 60 leaves no training images"));
  CHECK_THROWS_WITH(hold_out(labels_in_turns(), 6, {13, "balanced", 1}), Contains("13 is no multiple"));
  std::vector<int64_t> rare = labels_in_turns();
  rare.push_back(6);
  CHECK_THROWS_WITH(hold_out(rare, 7, {7, "balanced", 1}), Contains("leaves class 6 without training images"));
  CHECK_THROWS_AS(hold_out(rare, 7, {7, "balanced", 1}), ConfigError);
}

TEST_CASE("subsets of the training samples are balanced and nested, and leave the held-out ones alone") {
  const std::string kind = GENERATE("uniform", "balanced");
  const auto with = [&kind](int64_t train_size, int64_t seed = 1) {
    return hold_out(labels_in_turns(), 6, {6, kind, seed, train_size});
  };
  const HeldOut all = with(SplitOptions::kAll), twelve = with(12), thirty = with(30);
  CHECK(counts_of(twelve.train) == std::vector<int64_t>(6, 2));
  CHECK(counts_of(thirty.train) == std::vector<int64_t>(6, 5));
  CHECK(twelve.val == all.val);
  CHECK(thirty.val == all.val);
  CHECK(includes(thirty.train, twelve.train));
  CHECK(includes(all.train, thirty.train));
  CHECK(with(30, 2).train != thirty.train);
}

TEST_CASE("a subset that cannot be drawn is refused") {
  using Catch::Contains;
  CHECK(hold_out(labels_in_turns(), 6, {12, "balanced", 1, 48}).train ==
        hold_out(labels_in_turns(), 6, {12, "balanced", 1}).train);
  CHECK_THROWS_WITH(hold_out(labels_in_turns(), 6, {12, "balanced", 1, 13}),
                    Contains("data.train_size") && Contains("13 is no multiple"));
  CHECK_THROWS_WITH(hold_out(labels_in_turns(), 6, {12, "balanced", 1, 54}),
                    Contains("data.train_size: 54 takes 9 images of every class, and of class 0 8 are left"));
}

TEST_CASE("the recipe of a split names a subset only where there is one") {
  CHECK(SplitOptions{12, "balanced", 1}.recipe() == "split balanced val_size 12 seed 1\n");
  CHECK(SplitOptions{12, "balanced", 1, 48}.recipe() == "split balanced val_size 12 seed 1\ntrain_size 48\n");
}
