#include "metrics/sets/fuzzy.h"

#include <cmath>
#include <limits>

#include "metrics/sets/quantile.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

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
