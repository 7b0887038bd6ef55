#include "metrics/sets/clustered.h"

#include <cmath>
#include <set>

#include "metrics/sets/k_means.h"
#include "metrics/sets/quantile.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

double unit(uint64_t seed, int64_t item) {
  return set_noise(seed, SetNoise::kJudgedImage, item);
}

TEST_CASE("k-means finds groups that lie apart, by weight") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    std::vector<Embedding> points;
    std::vector<double> weights;
    for (int64_t i = 0; i < 30; ++i) {
      Embedding point{};
      for (size_t d = 0; d < point.size(); ++d) {
        point[d] = static_cast<double>(i % 3) + 0.2 * unit(seed, 5 * i + static_cast<int64_t>(d));
      }
      points.push_back(point);
      weights.push_back(1 + unit(seed, 1000 + i));
    }
    const std::vector<int64_t> found = k_means(points, weights, 3, seed);
    for (size_t i = 3; i < found.size(); ++i) CHECK(found[i] == found[i - 3]);
    CHECK(std::set<int64_t>(found.begin(), found.end()).size() == 3);
    CHECK(k_means(points, weights, 3, seed) == found);
  }
  // Two points far apart in weight: the third joins the nearer heavy one only where centres are weighted.
  CHECK(k_means({{0}, {1}, {2.2}}, {1, 1, 1}, 2, 0)[1] == k_means({{0}, {1}, {2.2}}, {1, 1, 1}, 2, 0)[0]);
  const std::vector<int64_t> same = k_means({{1}, {1}, {1}}, {1, 1, 1}, 2, 0);
  CHECK(same == std::vector<int64_t>{same[0], same[0], same[0]});
}

/// `per_class` images of each class; those of even classes have scores near 0, those of odd ones near 1.
LabelScores two_kinds(int64_t classes, int64_t per_class) {
  LabelScores images;
  for (int64_t i = 0; i < classes * per_class; ++i) {
    const int64_t label = i % classes;
    images.labels.push_back(label);
    images.scores.emplace_back(0.3 * unit(1, i) + static_cast<double>(label % 2));
  }
  return images;
}

TEST_CASE("classes with scores alike share the threshold of their images in the other part") {
  const LabelScores images = two_kinds(10, 60);
  const auto clustered =
      clustered_thresholds(parse_set_rule("conformal:lac:0.1:clustered(clusters=2,share=0.4)"), images, 10, 7);
  const LabelScores other = parts_of(images, 240, 7).second;
  std::vector<int64_t> kinds;
  for (const int64_t label : other.labels) kinds.push_back(label % 2);
  const std::vector<DoubleDouble> expected = conformal_quantiles(other.scores, kinds, 2, 0.1);
  for (size_t c = 0; c < 10; ++c) CHECK(clustered.thresholds[c] == expected[c % 2]);
  CHECK_THAT(clustered.note, Catch::StartsWith("0 of 10 classes are in no cluster") && Catch::Contains("2 clusters"));
}

TEST_CASE("rare classes, and all where there are too few, have the threshold of all images") {
  LabelScores images = two_kinds(10, 60);
  const SetRule rule = parse_set_rule("conformal:lac:0.1:clustered(clusters=2,share=0.4)");
  for (int64_t i = 0; i < 5; ++i) {
    images.labels.push_back(10);
    images.scores.emplace_back(2);
  }
  const auto clustered = clustered_thresholds(rule, images, 12, 7);
  const DoubleDouble marginal = conformal_quantile(parts_of(images, 242, 7).second.scores, 0.1);
  CHECK(clustered.thresholds[10] == marginal);
  CHECK(clustered.thresholds[11] == marginal);
  CHECK(clustered.thresholds[0] != marginal);
  CHECK_THAT(clustered.note, Catch::StartsWith("2 of 12 classes"));

  const auto none = clustered_thresholds(rule, two_kinds(2, 60), 2, 7);  // not more classes than clusters
  CHECK(none.thresholds[0] == none.thresholds[1]);
}

TEST_CASE("number of clusters and share follow the paper's rule") {
  // 75 classes with 20 images: m = 20 * 75 / 150 = 10, so 5 clusters and half of the images.
  const LabelScores images = two_kinds(75, 20);
  const auto automatic = clustered_thresholds(parse_set_rule("conformal:lac:0.1:clustered"), images, 75, 3);
  const auto given =
      clustered_thresholds(parse_set_rule("conformal:lac:0.1:clustered(clusters=5,share=0.5)"), images, 75, 3);
  CHECK((automatic.thresholds == given.thresholds));
  CHECK_THAT(automatic.note, Catch::Contains("5 clusters"));
}

}  // namespace
}  // namespace settrain
