#include "metrics/sets/p_values.h"

#include <ATen/ATen.h>

#include <cmath>
#include <string>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/set_quality.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr int64_t kSix = 6;

ClassFacts six_classes() {
  return {.classes = kSix,
          .train_counts = {9, 7, 5, 3, 2, 1},
          .superclass_of = {0, 0, 0, 1, 1, 2},
          .taxonomy = superclass_taxonomy({"A", "B", "C"}, {0, 0, 0, 1, 1, 2})};
}

struct Images {
  at::Tensor scores, labels;
};

Images drawn(int64_t images, uint64_t seed) {
  at::manual_seed(seed);
  const at::Tensor scores = at::randn({images, kSix}, at::kDouble).mul(2);
  return {scores, scores.add(at::randn(scores.sizes(), at::kDouble)).argmax(1)};
}

CalibratedRule calibrated(const std::string& name, const Images& images, uint64_t seed = 5) {
  return calibrate(parse_set_rule(name), six_classes(), images.scores, images.labels, seed);
}

TEST_CASE("a class is in the set where its p-value is above alpha") {
  const Images known = drawn(83, 1), judged = drawn(60, 2);
  for (const std::string name :
       {"lac:0.1", "lac:0.25", "aps:0.1", "aps(randomised=true):0.1", "raps(lambda=0.2,k=2):0.1", "saps:0.2", "pas:0.1",
        "tree(nodes=2):0.15", "lac:0.2:classwise", "aps:0.3:classwise", "pas:0.1:superclass"}) {
    INFO(name);
    const CalibratedRule rule = calibrated("conformal:" + name, known);
    const at::Tensor p = p_values_of(rule, judged.scores, /*first_image=*/7);
    CHECK(at::equal(p.gt(rule.rule.level), sets_of(rule, judged.scores, 7)));
    CHECK(p.gt(0).all().item<bool>());
    CHECK(p.le(1).all().item<bool>());
  }
}

TEST_CASE("p-values, by hand") {
  // The labels' probabilities are .5, .4, .2; a class with .4 has two calibration images with a score as large or
  // larger.
  const ClassFacts facts{.classes = 3};
  const at::Tensor known = at::tensor({.5, .3, .2, .4, .35, .25, .5, .3, .2}, at::kDouble).log().view({3, 3});
  const CalibratedRule rule =
      calibrate(parse_set_rule("conformal:lac:0.5"), facts, known, at::tensor({0, 0, 2}, at::kLong), 0);
  const at::Tensor p = p_values_of(rule, at::tensor({.45, .399, .151}, at::kDouble).log().unsqueeze(0));
  CHECK(p[0][0].item<double>() == Approx(3.0 / 4));
  CHECK(p[0][1].item<double>() == Approx(2.0 / 4));
  CHECK(p[0][2].item<double>() == Approx(1.0 / 4));
}

TEST_CASE("rules without p-values say why") {
  const Images known = drawn(83, 1);
  for (const std::string name :
       {"average:2", "average-error:0.1", "conformal:lac:0.1:rc3p", "conformal:lac:0.1:clustered"}) {
    CHECK_THROWS_WITH(p_values_of(calibrated(name, known), known.scores), Catch::Contains(name));
  }
  CalibratedRule earlier = calibrated("conformal:lac:0.1", known);
  earlier.label_scores = {};
  CHECK_THROWS_WITH(p_values_of(earlier, known.scores), Catch::Contains("calibrate it again"));
}

TEST_CASE("a place with the calibration images' own shares changes no set") {
  const Images known = drawn(89, 3), judged = drawn(50, 4);  // 90 * 0.9 is whole
  std::vector<double> shares(kSix);
  for (int64_t i = 0; i < 89; ++i) shares[static_cast<size_t>(known.labels[i].item<int64_t>())] += 3;
  for (const std::string name : {"conformal:lac:0.1", "conformal:aps(randomised=true):0.1", "conformal:pas:0.2",
                                 "conformal:lac:0.9999999999999"}) {  // 1 but for rounding: the smallest threshold
    const CalibratedRule rule = calibrated(name, known);
    for (const PlaceWeights& place :
         {place_weights(rule, shares), place_weights(rule, std::vector<bool>(kSix, true))}) {
      CHECK(place.effective_images == Approx(89));
      CHECK(at::equal(sets_of(for_place(rule, place), judged.scores), sets_of(rule, judged.scores)));
    }
  }
}

TEST_CASE("a place has the sets of the formula, none of its missing classes, and all that calibration lacks") {
  Images known = drawn(70, 6);
  const Images judged = drawn(40, 7);
  known.labels.masked_fill_(known.labels.eq(4), 0);  // class 4 is in no calibration image
  const std::vector<double> prior{5, 0, 1, 2, 3, 40};
  for (const std::string name : {"conformal:lac:0.2", "conformal:raps:0.1", "conformal:pas:0.3"}) {
    const CalibratedRule rule = calibrated(name, known);
    const PlaceWeights place = place_weights(rule, prior);
    CHECK(place.never == 1);
    CHECK(place.always == 1);
    const CalibratedRule there = for_place(rule, place);
    const at::Tensor sets = sets_of(there, judged.scores);
    CHECK_FALSE(sets.select(1, 1).any().item<bool>());
    CHECK(sets.select(1, 4).all().item<bool>());
    // The p-value of a class is the share of the weights of images at least as strange.
    CHECK(at::equal(p_values_of(there, judged.scores).gt(rule.rule.level), sets));
    double all = 0, squares = 0;
    for (const int64_t label : rule.label_scores.labels) {
      const double share = static_cast<double>(std::ranges::count(rule.label_scores.labels, label)) / 70;
      const double w = prior[static_cast<size_t>(label)] / 51 / share;
      all += w;
      squares += w * w;
    }
    CHECK(place.effective_images == Approx(all * all / squares));
    // By the formula for one class and its scores, which those of calibration images are.
    const double w = place.weights[5];
    for (int64_t i = 0; i < 70; ++i) {
      if (rule.label_scores.labels[static_cast<size_t>(i)] != 5) continue;
      const DoubleDouble s = rule.label_scores.scores[static_cast<size_t>(i)];
      double beyond = 0;
      for (size_t j = 0; j < 70; ++j)
        if (rule.label_scores.scores[j] >= s) beyond += place.weights[static_cast<size_t>(rule.label_scores.labels[j])];
      const bool is_in = (beyond + w) / (all + w) > rule.rule.level;
      CHECK((s <= there.thresholds[5]) == is_in);
    }
  }
}

TEST_CASE("only conformal rules of all images, or of each class, are for a place") {
  const Images known = drawn(60, 8), judged = drawn(20, 9);
  const std::vector<bool> occurs{true, true, false, true, true, true};
  const CalibratedRule classwise = calibrated("conformal:lac:0.2:classwise", known);
  at::Tensor wanted = sets_of(classwise, judged.scores);
  wanted.select(1, 2).fill_(false);
  const CalibratedRule there = for_place(classwise, place_weights(classwise, occurs));
  CHECK(at::equal(sets_of(there, judged.scores), wanted));
  CHECK(at::equal(p_values_of(there, judged.scores).gt(0.2), wanted));
  CalibratedRule void_rule = calibrated("conformal:lac:0.2", known);
  void_rule.guarantee = "no guarantee: its images trained the model";
  CHECK(for_place(void_rule, place_weights(void_rule, occurs)).guarantee == void_rule.guarantee);
  for (const std::string name : {"conformal:tree(nodes=2):0.2", "conformal:lac:0.2:superclass"}) {
    const CalibratedRule rule = calibrated(name, known);
    CHECK_THROWS_WITH(for_place(rule, place_weights(rule, occurs)), Catch::Contains(name));
  }
}

TEST_CASE("coverage holds at a place whose prior is right") {
  // P(x | y): scores around the label's own; the shares at the place differ from those of calibration.
  constexpr int64_t kDraws = 400, kKnown = 150, kJudged = 50;
  const at::Tensor before = at::tensor({.3, .25, .2, .1, .1, .05}, at::kDouble);
  const std::vector<double> prior{.02, .05, .03, .3, .3, .3};
  const auto images = [](int64_t count, const at::Tensor& shares) {
    const at::Tensor labels = at::multinomial(shares, count, /*replacement=*/true);
    const at::Tensor wide = at::arange(1, kSix + 1).to(at::kDouble).mul(0.2);  // the later classes are harder
    const at::Tensor noise = at::randn({count, kSix}, at::kDouble).mul(wide.index_select(0, labels).unsqueeze(1));
    return Images{at::one_hot(labels, kSix).to(at::kDouble).mul(1.5).add(noise), labels};
  };
  at::manual_seed(11);
  double corrected = 0, uncorrected = 0;
  for (int64_t draw = 0; draw < kDraws; ++draw) {
    const CalibratedRule rule = calibrated("conformal:lac:0.1", images(kKnown, before));
    const Images judged = images(kJudged, at::tensor(prior, at::kDouble));
    const auto covered = [&](const CalibratedRule& by) {
      return outcomes_of(sets_of(by, judged.scores), judged.labels).has_label.to(at::kDouble).mean().item<double>() /
             kDraws;
    };
    corrected += covered(for_place(rule, place_weights(rule, prior)));
    uncorrected += covered(rule);
  }
  CHECK(uncorrected < 0.85);
  CHECK(corrected > 0.89);  // p_y is that of the drawn calibration images, so the weights are nearly exact
  CHECK(corrected < 0.95);
}

}  // namespace
}  // namespace settrain
