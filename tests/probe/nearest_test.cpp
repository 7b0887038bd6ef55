#include "src/probe/nearest.h"

#include <limits>

#include "tests/probe/golden.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr float kNone = -std::numeric_limits<float>::infinity();

// The first class of the largest score.
at::Tensor best(const at::Tensor& scores) {
  const at::Tensor largest = scores.eq(scores.amax(1, true));
  return largest.to(at::kInt).argmax(1);  // of equal values the first
}

NeighbourScores neighbours_of(const LabelledFeatures& train, const at::Tensor& test, int64_t classes, int64_t k,
                              Distance distance = Distance::kEuclidean) {
  return nearest_neighbours(train, test, classes, k, distance, [](int64_t) {});
}

TEST_CASE("neighbours and class means predict what scikit-learn predicts, image by image") {
  const nlohmann::json golden = test::probe_golden();
  const LabelledFeatures train = test::features_of(golden, "train"), test = test::features_of(golden, "test");
  for (const auto& expected : golden.at("neighbours")) {
    const auto distance = expected.at("distance") == "cosine" ? Distance::kCosine : Distance::kEuclidean;
    const NeighbourScores scores = neighbours_of(train, test.features, 4, expected.at("k"), distance);
    CAPTURE(expected.at("distance").get<std::string>(), expected.at("k").get<int>());
    const at::Tensor predicted = test::labels_of(expected.at("predicted"));
    CHECK(best(scores.votes).equal(predicted));
    if (expected.at("k") == 1) CHECK(best(scores.nearest).equal(predicted));
  }
  const at::Tensor means = class_mean_scores(train, test.features, 4, Distance::kEuclidean);
  CHECK(best(means).equal(test::labels_of(golden.at("class_means"))));
}

TEST_CASE("of neighbours at one distance the first count, and classes without votes have no score") {
  const LabelledFeatures train{at::tensor({1.F, -1.F, 1.F, -1.F, 9.F}).view({5, 1}), at::tensor({3L, 1L, 0L, 0L, 2L})};
  const NeighbourScores scores = neighbours_of(train, at::zeros({1, 1}), 5, 2);
  CHECK(scores.votes.equal(at::tensor({kNone, 1.F, kNone, 1.F, kNone}).view({1, 5})));
  CHECK(scores.nearest.equal(at::tensor({kNone, kNone, kNone, 0.F, kNone}).view({1, 5})));
  CHECK(
      neighbours_of(train, at::zeros({1, 1}), 5, 5).votes.equal(at::tensor({2.F, 1.F, 1.F, 1.F, kNone}).view({1, 5})));
}

TEST_CASE("neighbours are exact where float32 products cannot tell them apart") {
  // All images lie far from the origin and from one another in one feature, and differ in 1e-3 of another.
  at::Tensor features = at::zeros({64, 2});
  features.select(1, 0).copy_(at::arange(64).remainder(2).mul(2e4F).sub(1e4F));
  features.select(1, 1).copy_(at::arange(64).mul(1e-3F));
  const LabelledFeatures train{features, at::arange(64)};
  CHECK(best(neighbours_of(train, features, 64, 1).nearest).equal(at::arange(64)));
}

TEST_CASE("a zero vector is at cosine distance 1 from all") {
  const LabelledFeatures train{at::tensor({-1.F, 0.F, 0.F, 0.F, 1.F, 1.F}).view({3, 2}), at::arange(3)};
  const at::Tensor asked = at::tensor({1.F, -1.F, 0.F, 0.F}).view({2, 2});
  // The cosines of the first are -0.71, none and 0; the second has none at all.
  CHECK(best(neighbours_of(train, asked, 3, 1, Distance::kCosine).nearest).equal(at::tensor({1L, 0L})));
}

TEST_CASE("a class without training images has no mean, and equal means go to the lower class") {
  const LabelledFeatures train{at::tensor({0.F, 2.F, 1.F, 5.F}).view({4, 1}), at::tensor({2L, 2L, 1L, 0L})};
  const at::Tensor scores = class_mean_scores(train, at::tensor({0.9F}).view({1, 1}), 4, Distance::kEuclidean);
  CHECK(best(scores).item<int64_t>() == 1);
  CHECK(scores[0][3].item<double>() == -std::numeric_limits<double>::infinity());
}

TEST_CASE("every block of test images is told") {
  const LabelledFeatures train{at::ones({3, 2}), at::arange(3)};
  int64_t told = 0;
  nearest_neighbours(train, at::ones({7, 2}), 3, 1, Distance::kEuclidean, [&](int64_t done) { told = done; });
  CHECK(told == 7);
}

}  // namespace
}  // namespace settrain
