#include "src/measure/bench/place_coverage.h"

#include <ATen/ATen.h>

#include <cmath>

#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

/// Eight classes of equal shares, whose scores are log P(y | x).
ScoreFile eight_classes(int64_t images) {
  at::manual_seed(4);
  ScoreFile file;
  file.scores.labels = at::arange(images, at::kLong).remainder(8);
  const at::Tensor means = at::eye(8, at::kDouble).index_select(0, file.scores.labels);
  file.scores.scores = at::randn({images, 8}, at::kDouble).add(means.mul(2)).mul(2);
  file.facts.classes = 8;
  return file;
}

}  // namespace

TEST_CASE("rules for a place hold there where its shares are right, and not where they are wrong") {
  const PlaceBench bench{.draws = 40, .images = 500, .imbalance = 50};
  const auto outcomes = place_coverage(parse_set_rule("conformal:lac:0.2"), eight_classes(4000), bench);
  REQUIRE(outcomes.size() == 6);
  const PlaceOutcome &plain = outcomes[0], &weighted = outcomes[1], &corrected = outcomes[2], &estimated = outcomes[3],
                     &wrong = outcomes[5];
  for (const PlaceOutcome* right : {&weighted, &corrected}) {
    CAPTURE(right->way);
    CHECK(right->coverage > 0.8 - 3 * right->error);
    CHECK(right->coverage < 0.8 + 0.02 + 3 * right->error);
    CHECK(right->error < 0.02);
  }
  // Shares that are estimated make no promise: they are near the right ones, and the coverage is near theirs.
  CHECK(std::abs(estimated.coverage - corrected.coverage) < 0.03);
  CHECK(corrected.mean_size < plain.mean_size - 0.1);
  CHECK(wrong.coverage < 0.75);
  // The same draws give the same numbers.
  CHECK(place_coverage(parse_set_rule("conformal:lac:0.2"), eight_classes(4000), bench)[5].coverage == wrong.coverage);
}

TEST_CASE("places are for a softmax, and for rules that have a form for them") {
  ScoreFile file = eight_classes(80);
  CHECK_THROWS_AS(place_coverage(parse_set_rule("conformal:lac:0.2:rc3p"), file, {}), ConfigError);
  file.facts.probability = ProbabilityKind::kSigmoid;
  CHECK_THROWS_WITH(place_coverage(parse_set_rule("conformal:lac:0.2"), file, {}), Catch::Contains("softmax"));
}

}  // namespace settrain
