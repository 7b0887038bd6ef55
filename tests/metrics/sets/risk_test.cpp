// Conformal risk control: the share of an image's labels that its set lacks.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/p_values.h"
#include "metrics/sets/rules/rule_terms.h"
#include "metrics/sets/rules/stored_rules.h"
#include "metrics/sets/set_quality.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;

/// [images, classes] scores, and labels that larger scores have more often: one at least, and up to all.
SplitScores several_labels(int64_t images, int64_t classes, uint64_t seed, at::ScalarType dtype = at::kDouble) {
  at::manual_seed(seed);
  const at::Tensor scores = at::randn({images, classes}, at::kDouble).mul(2);
  const at::Tensor noisy = scores.add(at::randn(scores.sizes(), at::kDouble).mul(2));
  const at::Tensor first = noisy.argmax(1);
  return {scores.to(dtype), first, noisy.gt(2).scatter(1, first.unsqueeze(1), true)};
}

/// Mean of 1 - |Y and C| / |Y|.
double mean_loss(const at::Tensor& sets, const at::Tensor& labels) {
  return 1 - sets.logical_and(labels).sum(1).to(at::kDouble).div(labels.sum(1)).mean().item<double>();
}

CalibratedRule risk_rule(double alpha, const SplitScores& images, ProbabilityKind kind, bool all_labels = true) {
  const SetRule rule = parse_set_rule(fmt::format("conformal:risk:{}", alpha));
  return calibrate(rule, {.classes = images.scores.size(1), .probability = kind}, images.scores,
                   all_labels ? images.label_sets : images.labels, 0);
}

TEST_CASE("the threshold is the smallest whose bound on the risk is at most alpha") {
  for (const ProbabilityKind kind : {ProbabilityKind::kSoftmax, ProbabilityKind::kSigmoid}) {
    for (const int64_t images : {20, 57}) {
      for (const double alpha : {0.1, 0.25, 0.5}) {
        const SplitScores split = several_labels(images, 4, static_cast<uint64_t>(images), at::kFloat);
        const CalibratedRule rule = risk_rule(alpha, split, kind);
        const auto n = static_cast<double>(images);
        const auto bound = [&](const at::Tensor& sets) {
          return (n * mean_loss(sets, split.label_sets) + 1) / (n + 1);
        };
        CHECK(bound(sets_of(rule, split.scores)) <= alpha + 1e-12);
        // A label has the threshold's score, and without the scores that equal it the bound is above alpha. A threshold
        // above 1/2 is a sum of two numbers, and its first part is p to the last digit but one.
        const at::Tensor p = probabilities_of(split.scores, kind);
        const double threshold = -rule.thresholds.front().high, rounding = 1e-15;
        CHECK(p.sub(threshold).abs().le(rounding).logical_and(split.label_sets).any().item<bool>());
        CHECK(bound(p.gt(threshold + rounding)) > alpha + 1e-12);
        CHECK(at::equal(sets_of(rule, split.scores), p.ge(threshold - rounding)));
      }
    }
  }
}

TEST_CASE("of images with one label the threshold is that of lac, to the last bit") {
  for (const int64_t images : {5, 9, 10, 19, 100, 333}) {
    const SplitScores split = several_labels(images, 6, 7);
    const at::Tensor sets = at::zeros({images, 6}, at::kBool).scatter_(1, split.labels.unsqueeze(1), true);
    for (const double alpha : {0.05, 0.1, 0.3, 0.5, 0.9}) {
      const SetRule lac = parse_set_rule(fmt::format("conformal:lac:{}", alpha));
      const CalibratedRule wanted = calibrate(lac, {.classes = 6}, split.scores, split.labels, 0);
      CAPTURE(images, alpha);
      const SplitScores single{split.scores, split.labels, sets};
      CHECK((risk_rule(alpha, single, ProbabilityKind::kSoftmax).thresholds == wanted.thresholds));
      CHECK((risk_rule(alpha, split, ProbabilityKind::kSoftmax, /*all_labels=*/false).thresholds == wanted.thresholds));
    }
  }
}

TEST_CASE("the expected share of labels that a set lacks is at most alpha") {
  constexpr int64_t kDraws = 1000, kKnown = 40, kJudged = 20;
  for (const ProbabilityKind kind : {ProbabilityKind::kSoftmax, ProbabilityKind::kSigmoid}) {
    for (const double alpha : {0.1, 0.3}) {
      double sum = 0, squares = 0;
      for (int64_t draw = 0; draw < kDraws; ++draw) {
        const SplitScores all = several_labels(kKnown + kJudged, 5, static_cast<uint64_t>(draw) + 100);
        const SplitScores known{all.scores.narrow(0, 0, kKnown), all.labels.narrow(0, 0, kKnown),
                                all.label_sets.narrow(0, 0, kKnown)};
        const double loss = mean_loss(sets_of(risk_rule(alpha, known, kind), all.scores.narrow(0, kKnown, kJudged)),
                                      all.label_sets.narrow(0, kKnown, kJudged));
        sum += loss;
        squares += loss * loss;
      }
      const double mean = sum / kDraws, error = std::sqrt((squares / kDraws - mean * mean) / kDraws);
      CAPTURE(alpha, mean, error);
      CHECK(mean < alpha + 3 * error);
      CHECK(mean > alpha - 2.0 / (kKnown + 1) - 3 * error);  // the paper's theorem 2: not below by more
    }
  }
}

TEST_CASE("with too few images every set holds all classes") {
  const SplitScores split = several_labels(8, 4, 3);
  const CalibratedRule rule = risk_rule(0.1, split, ProbabilityKind::kSoftmax);
  CHECK((rule.thresholds.front() == DoubleDouble(kAlwaysIn)));
  CHECK(sets_of(rule, split.scores).all().item<bool>());
  REQUIRE(rule.notes.size() == 1);
  CHECK_THAT(rule.notes.front(), Contains("needs 9 calibration images, there are 8"));
}

TEST_CASE("a rule for several labels says what it promises, and is stored and read") {
  const SplitScores split = several_labels(60, 4, 3);
  const CalibratedRule rule = risk_rule(0.1, split, ProbabilityKind::kSigmoid);
  CHECK_THAT(rule.guarantee, Contains("at least a share 0.9 of its labels"));
  const CalibratedRule read = rule_from_json(to_json(rule), 4);
  CHECK(at::equal(sets_of(read, split.scores), sets_of(rule, split.scores)));
  CHECK_THROWS_WITH(p_values_of(rule, split.scores), Contains("all labels of an image"));
}

TEST_CASE("label sets are for risk, and every image has a label") {
  const SplitScores split = several_labels(30, 4, 3);
  const ClassFacts facts{.classes = 4};
  CHECK_THROWS_AS(calibrate(parse_set_rule("conformal:lac:0.1"), facts, split.scores, split.label_sets, 0), ShapeError);
  at::Tensor none = split.label_sets.clone();
  none[2].fill_(false);
  CHECK_THROWS_WITH(calibrate(parse_set_rule("conformal:risk:0.1"), facts, split.scores, none, 0),
                    Contains("image 2 (from 0) has no label"));
}

TEST_CASE("the quality of sets by all labels, by hand") {
  const auto flags = [](const std::vector<int64_t>& values) {
    return at::tensor(values, at::kLong).view({-1, 3}).to(at::kBool);
  };
  // The sets hold 1 of 2, 1 of 1 and 1 of 3 labels; of class 0 two of two images, of 1 one of three, of 2 none of one.
  const at::Tensor sets = flags({1, 0, 0, 0, 1, 0, 1, 0, 0}), labels = flags({1, 1, 0, 0, 1, 0, 1, 1, 1});
  const SetQuality quality = set_quality(sets, labels, 0.8, {10, 50, 500});
  CHECK(quality.images == 3);
  CHECK(quality.coverage == Approx((1.0 / 2 + 1 + 1.0 / 3) / 3));
  CHECK(quality.mean_size == 1);
  CHECK(quality.class_coverage == std::vector<double>{1, 1.0 / 3, 0});
  CHECK(quality.macro_coverage == Approx((1 + 1.0 / 3 + 0) / 3));
  CHECK(quality.shot_coverage[0] == 1);
  CHECK(quality.below_half == Approx(2.0 / 3));
  CHECK(quality.size_stratified_violation == Approx(0.8 - 11.0 / 18));
  const SetQuality second = set_quality(outcomes_of(sets, labels).of(at::tensor({1}, at::kLong)), 0.8, {});
  CHECK(second.coverage == 1);
}

}  // namespace
}  // namespace settrain
