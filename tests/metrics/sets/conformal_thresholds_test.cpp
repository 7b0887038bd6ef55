#include "metrics/sets/conformal_thresholds.h"

#include <cmath>
#include <limits>
#include <set>

#include "metrics/sets/conformal_scores.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr double kNoQuantile = std::numeric_limits<double>::infinity();

TEST_CASE("the rank of the quantile is exact where a product is rounded") {
  CHECK(conformal_rank(9, 0.1) == 9);     // 10 * 0.9
  CHECK(conformal_rank(19, 0.05) == 19);  // 20 * 0.95
  CHECK(conformal_rank(99, 0.07) == 93);
  CHECK(conformal_rank(8, 0.1) == 9);  // 8.1
  CHECK(conformal_rank(0, 0.1) == 1);
  CHECK(conformal_rank(10, 0.999) == 1);
  for (int64_t hundredths = 1; hundredths < 100; ++hundredths) {
    for (int64_t n = 0; n < 2000; n += 7) {
      const int64_t exact = ((n + 1) * (100 - hundredths) + 99) / 100;
      if (conformal_rank(n, static_cast<double>(hundredths) / 100) != exact) {
        CAPTURE(n, hundredths);
        FAIL();
      }
    }
  }
}

TEST_CASE("the images that alpha needs are the fewest with a finite quantile") {
  CHECK(images_needed(0.1) == 9);
  CHECK(images_needed(0.05) == 19);
  CHECK(images_needed(0.5) == 1);
  CHECK(images_needed(0.9) == 1);
  CHECK(images_needed(1e-300) == 1000000000000000000);
  for (int64_t thousandths = 1; thousandths < 1000; ++thousandths) {
    const double alpha = static_cast<double>(thousandths) / 1000;
    const int64_t n = images_needed(alpha);
    CAPTURE(alpha, n);
    CHECK(conformal_rank(n, alpha) <= n);
    CHECK((n == 1 || conformal_rank(n - 1, alpha) > n - 1));
  }
}

TEST_CASE("the quantile is the m-th smallest score, infinite where there are fewer") {
  CHECK(conformal_quantile({3, 1, 2}, 0.5) == 2);
  CHECK(conformal_quantile({3, 1, 2}, 0.25) == 3);
  CHECK(conformal_quantile({3, 1, 2}, 0.24) == kNoQuantile);
  CHECK(conformal_quantile({3, 1, 2}, 0.9) == 1);
  CHECK(conformal_quantile({}, 0.5) == kNoQuantile);
}

TEST_CASE("groups have quantiles of their own") {
  CHECK(
      (conformal_quantiles({5, 1, 4, 2, 9}, {0, 1, 0, 1, -1}, 3, 0.4) == std::vector<DoubleDouble>{5, 2, kNoQuantile}));
}

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
  CHECK_THAT(clustered.note, Catch::Contains("0 of 10 classes") && Catch::Contains("2 clusters"));
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

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

LabelScores random_images(int64_t images, int64_t classes) {
  LabelScores found;
  for (int64_t i = 0; i < images; ++i) {
    found.labels.push_back(
        static_cast<int64_t>(set_noise(5, SetNoise::kJudgedImage, i) * static_cast<double>(classes)));
    found.scores.emplace_back(set_noise(6, SetNoise::kJudgedImage, i));
  }
  return found;
}

/// F_y(s), by the definition.
double share_below(const LabelScores& part, const std::vector<int64_t>& train_counts, double sigma, uint64_t seed,
                   size_t y, DoubleDouble s) {
  const auto place = [&](size_t c) {
    return static_cast<double>(train_counts[c]) / 10 +
           0.01 * (2 * set_noise(seed, SetNoise::kRarity, static_cast<int64_t>(c)) - 1);
  };
  double own = 0, below = 0, all = 1;
  for (const int64_t label : part.labels) own += label == static_cast<int64_t>(y);
  for (size_t i = 0; i < part.labels.size(); ++i) {
    const double distance = place(static_cast<size_t>(part.labels[i])) - place(y);
    const double weight = std::exp(-distance * distance / (2 * (sigma / (own + 1))));
    all += weight;
    if (part.scores[i] <= s) below += weight;
  }
  return below / all;
}

TEST_CASE("a class is in a set where its weighted distribution stays below the held-out images' level") {
  const std::vector<int64_t> train_counts{10, 9, 3, 0, 1};
  const LabelScores images = random_images(200, 4);  // class 4 has none
  for (const double sigma : {1e-3, 0.1, 100.0}) {
    SetRule rule = parse_set_rule("conformal:lac:0.1:fuzzy(1)");
    rule.sigma = sigma;
    const std::vector<DoubleDouble> thresholds = fuzzy_thresholds(rule, images, train_counts, 9);
    const auto [weighted, held_out] = parts_of(images, 150, 9);
    const auto share = [&, part = weighted](size_t y, DoubleDouble s) {
      return share_below(part, train_counts, sigma, 9, y, s);
    };
    std::vector<DoubleDouble> levels;
    for (size_t i = 0; i < held_out.labels.size(); ++i) {
      levels.emplace_back(share(static_cast<size_t>(held_out.labels[i]), held_out.scores[i]));
    }
    const double level = conformal_quantile(levels, 0.1).high;
    for (size_t y = 0; y < train_counts.size(); ++y) {
      for (const DoubleDouble s : images.scores) {
        CAPTURE(sigma, y, s.high);
        if (std::abs(share(y, s) - level) > 1e-12) CHECK((s <= thresholds[y]) == (share(y, s) <= level));
      }
    }
  }
}

TEST_CASE("a wide Gaussian pools all classes, a narrow one leaves a class without images unlimited") {
  const LabelScores images = random_images(400, 4);
  const auto thresholds = [&](double sigma) {
    SetRule rule = parse_set_rule("conformal:lac:0.1:fuzzy(1)");
    rule.sigma = sigma;
    return fuzzy_thresholds(rule, images, {10, 6, 3, 2, 0}, 2);
  };
  const std::vector<DoubleDouble> wide = thresholds(1e30), narrow = thresholds(1e-12);
  for (const DoubleDouble threshold : wide) CHECK(threshold == wide[0]);
  CHECK(narrow[4] == kUnlimited);
  CHECK(narrow[0] != narrow[1]);
}

TEST_CASE("without held-out images every class is in") {
  const std::vector<DoubleDouble> thresholds =
      fuzzy_thresholds(parse_set_rule("conformal:lac:0.1:fuzzy(1)"), random_images(3, 2), {1, 2}, 0);
  CHECK((thresholds == std::vector<DoubleDouble>{kUnlimited, kUnlimited}));
}

}  // namespace
}  // namespace settrain
