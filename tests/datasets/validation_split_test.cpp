#include "datasets/validation_split.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <vector>

#include "src/core/error.h"

using namespace settrain;

namespace {

// 10 labels of each of 6 classes, in turns.
std::vector<int64_t> labels_in_turns() {
  std::vector<int64_t> labels;
  for (int64_t i = 0; i < 60; ++i) labels.push_back(i % 6);
  return labels;
}

std::vector<int64_t> together(const HeldOut& held_out) {
  std::vector<int64_t> all = held_out.train;
  all.insert(all.end(), held_out.val.begin(), held_out.val.end());
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace

TEST_CASE("a split is disjoint and complete", "[fast]") {
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

TEST_CASE("a balanced split takes equally many of every class", "[fast]") {
  const std::vector<int64_t> labels = labels_in_turns();
  std::vector<int64_t> counts(6);
  for (const int64_t i : hold_out(labels, 6, {18, "balanced", 1}).val)
    ++counts[static_cast<size_t>(labels[static_cast<size_t>(i)])];
  CHECK(counts == std::vector<int64_t>(6, 3));
}

TEST_CASE("a split follows its seed alone", "[fast]") {
  for (const char* kind : {"uniform", "balanced"}) {
    const auto val = hold_out(labels_in_turns(), 6, {12, kind, 1234}).val;
    CHECK(val == hold_out(labels_in_turns(), 6, {12, kind, 1234}).val);
    CHECK(val != hold_out(labels_in_turns(), 6, {12, kind, 1235}).val);
  }
}

TEST_CASE("a split that cannot be drawn is refused", "[fast]") {
  using Catch::Contains;
  CHECK_THROWS_WITH(hold_out(labels_in_turns(), 6, {60, "uniform", 1}),
                    Contains("data.val_size: 60 leaves no training images"));
  CHECK_THROWS_WITH(hold_out(labels_in_turns(), 6, {13, "balanced", 1}), Contains("13 is no multiple"));
  std::vector<int64_t> rare = labels_in_turns();
  rare.push_back(6);
  CHECK_THROWS_WITH(hold_out(rare, 7, {7, "balanced", 1}), Contains("leaves class 6 without training images"));
  CHECK_THROWS_AS(hold_out(rare, 7, {7, "balanced", 1}), ConfigError);
}
