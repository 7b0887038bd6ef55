#include "metrics/split_scores.h"

#include <ATen/ATen.h>

#include <limits>

#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

SplitScores good_split() {
  return {at::zeros({3, 4}), at::tensor({0, 3, 1}, at::kLong)};
}

TEST_CASE("a finite split with labels of its classes passes") {
  CHECK_NOTHROW(check_split(good_split()));
}

TEST_CASE("a score that is not finite is named by sample and class") {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                          -std::numeric_limits<float>::infinity()}) {
    SplitScores split = good_split();
    split.scores[1][2] = bad;
    split.scores[2][0] = bad;
    CHECK_THROWS_AS(check_split(split), NumericalError);
    CHECK_THROWS_WITH(check_split(split), Catch::Contains("sample 1") && Catch::Contains("class 2"));
  }
}

TEST_CASE("labels outside the classes are refused") {
  for (const int64_t bad : {-1, 4}) {
    SplitScores split = good_split();
    split.labels[2] = bad;
    CHECK_THROWS_AS(check_split(split), ShapeError);
    CHECK_THROWS_WITH(check_split(split), Catch::Contains("0 to 3") && Catch::Contains(std::to_string(bad)));
  }
}

TEST_CASE("wrong shapes and dtypes are refused") {
  SplitScores split = good_split();
  split.labels = split.labels.slice(0, 0, 2);
  CHECK_THROWS_AS(check_split(split), ShapeError);
  split = good_split();
  split.labels = split.labels.to(at::kInt);
  CHECK_THROWS_WITH(check_split(split), Catch::Contains("int64"));
  split = good_split();
  split.scores = split.scores.to(at::kHalf);
  CHECK_THROWS_WITH(check_split(split), Catch::Contains("float32"));
  CHECK_THROWS_AS(check_scores("scores", at::zeros({4})), ShapeError);
  CHECK_THROWS_AS(check_scores("scores", at::zeros({0, 4})), ShapeError);
}

TEST_CASE("label sets are checked with the split, and chosen with its samples") {
  SplitScores split = good_split();
  split.label_sets = at::tensor({1, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0, 0}).view({3, 4}).to(at::kBool);
  CHECK_NOTHROW(check_split(split));
  const std::vector<int64_t> chosen{2, 0, 2};
  CHECK(samples_of(split, chosen).label_sets.equal(split.label_sets.index_select(0, at::tensor(chosen, at::kLong))));
  CHECK_FALSE(samples_of(good_split(), chosen).label_sets.defined());
  split.label_sets = split.label_sets.slice(0, 0, 2);
  CHECK_THROWS_WITH(check_split(split), Catch::Contains("label_sets"));
  split.label_sets = at::zeros({3, 4}, at::kBool);
  CHECK_THROWS_WITH(check_split(split), Catch::Contains("image 0"));
}

}  // namespace
}  // namespace settrain
