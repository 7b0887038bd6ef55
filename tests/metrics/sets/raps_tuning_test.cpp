// The numbers of raps, tuned on a part of the calibration images.
#include <ATen/ATen.h>
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "metrics/label_rank.h"
#include "metrics/sets/calibrate.h"
#include "metrics/sets/conformal_thresholds.h"
#include "metrics/sets/rules/stored_rules.h"
#include "metrics/sets/set_quality.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

SplitScores unsure_images(int64_t images, uint64_t seed) {
  at::manual_seed(seed);
  const at::Tensor scores = at::randn({images, 20}, at::kDouble).mul(1.5);
  return {scores, scores.add(at::rand(scores.sizes(), at::kDouble).log().neg().log().neg()).argmax(1)};
}

CalibratedRule calibrated_by(const std::string& name, const SplitScores& images) {
  return calibrate(parse_set_rule(name), {.classes = 20}, images.scores, images.labels, 3);
}

TEST_CASE("k is a quantile of the labels' ranks, and lambda the best of a few on the same images") {
  const SplitScores images = unsure_images(400, 1);
  for (const std::string what : {"size", "strata"}) {
    const SetRule rule = parse_set_rule("conformal:raps(tune=" + what + "):0.1");
    const RapsPenalty tuned = tuned_penalty(rule, {.classes = 20}, images, 3);
    std::vector<int64_t> ranks;
    for (int64_t i = 0; i < 400; ++i) ranks.push_back(label_ranks(images.scores, images.labels)[i].item<int64_t>() + 1);
    std::ranges::sort(ranks);
    CHECK(tuned.k == ranks[360]);  // the 361st of 400 is the ceil(401 * 0.9)-th
    const auto cost = [&](double lambda) {
      const SetQuality quality =
          set_quality(sets_of(calibrated_by(fmt::format("conformal:raps(lambda={},k={}):0.1", lambda, tuned.k), images),
                              images.scores),
                      images.labels, 0.9, {});
      return what == "size" ? quality.mean_size : quality.size_stratified_violation;
    };
    for (const double other : what == "size" ? std::vector<double>{0.001, 0.01, 0.1, 0.2, 0.5}
                                             : std::vector<double>{0.00001, 0.0001, 0.0008, 0.001, 0.0015, 0.002})
      CHECK(cost(tuned.lambda) <= cost(other));
  }
}

TEST_CASE("the other images set the threshold, and the promise holds") {
  const SplitScores judged = unsure_images(4000, 2);
  double covered = 0;
  constexpr int kDraws = 60;
  for (int draw = 0; draw < kDraws; ++draw) {
    const CalibratedRule rule = calibrated_by("conformal:raps(tune=size):0.1", unsure_images(300, 100 + draw));
    REQUIRE(rule.images == 210);
    covered += set_quality(sets_of(rule, judged.scores), judged.labels, 0.9, {}).coverage / kDraws;
  }
  CHECK(covered == Approx(0.9).margin(0.012));
}

TEST_CASE("tuned numbers are those of the rule with them by name, and are stored and read") {
  const SplitScores images = unsure_images(300, 1), judged = unsure_images(500, 2);
  const CalibratedRule rule = calibrated_by("conformal:raps(tune=strata):0.2", images);
  CalibratedRule named{.rule = parse_set_rule("conformal:raps:0.2"), .classes = 20, .thresholds = rule.thresholds};
  named.rule.lambda = rule.tuned.lambda;
  named.rule.k = rule.tuned.k;
  CHECK(at::equal(sets_of(rule, judged.scores), sets_of(named, judged.scores)));
  const CalibratedRule read = rule_from_json(to_json(rule), 20);
  CHECK(read.rule == rule.rule);
  CHECK(at::equal(sets_of(read, judged.scores), sets_of(rule, judged.scores)));
  nlohmann::ordered_json json = to_json(rule);
  json["tuned"]["k"] = -1;
  CHECK_THROWS_AS(rule_from_json(json, 20), RunError);
  CHECK(rule.notes.front().find("are tuned on 90 of the 300 calibration images") != std::string::npos);
}

}  // namespace
}  // namespace settrain
