#include "src/inference/calibration.h"

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <nlohmann/json.hpp>

#include "src/core/error.h"

namespace settrain {
namespace {

using Catch::Contains;

// Labels drawn by softmax(scores / 3), so that 3 is the temperature.
SplitScores drawn_scores(int64_t images, int64_t seed) {
  at::manual_seed(static_cast<uint64_t>(seed));
  const at::Tensor scores = at::randn({images, 8}, at::kDouble) * 6;
  return {scores, at::multinomial(at::softmax(scores / 3, 1), 1).squeeze(1)};
}

CalibrationRequest request_for(const std::vector<std::string>& names) {
  CalibrationRequest request;
  for (const std::string& name : names) request.rules.push_back(parse_set_rule(name));
  return request;
}

const ClassFacts kFacts{.classes = 8, .train_counts = {5, 5, 50, 50, 50, 500, 500, 500}};

}  // namespace

TEST_CASE("rules are calibrated on some images and judged on others", "[fast]") {
  const SplitScores val = drawn_scores(2000, 1), test = drawn_scores(3000, 2);
  const Calibration done =
      calibrate_and_judge(request_for({"top:2", "conformal:lac:0.1", "error:0.1"}), kFacts, val, "val", &test, "test");
  REQUIRE(done.rules.size() == 3);
  CHECK(done.calibrated_on == "2000 images of val");
  CHECK(done.judged_on == "3000 images of test");
  CHECK(done.rules[0].quality.mean_size == 2);
  CHECK(done.rules[1].quality.coverage == Approx(0.9).margin(0.03));
  // The probabilities are too sure, so their sets miss more than they promise.
  CHECK(done.rules[2].quality.coverage < 0.85);
  const std::string text = format_calibration(done);
  CHECK_THAT(text, Contains("Calibrated on 2000 images of val, judged on 3000 images of test."));
  CHECK_THAT(text, Contains("- top:2: no guarantee"));
  const auto json = calibration_json(done);
  CHECK(json.at("rules").at(1).at("quality").at("class_coverage").size() == 8);
  CHECK(json.at("rules").at(0).at("quality").at("undercoverage_gap").is_null());
}

TEST_CASE("a share of the images calibrates and the rest judges", "[fast]") {
  CalibrationRequest request = request_for({"conformal:lac:0.1"});
  request.share = 0.25;
  const SplitScores val = drawn_scores(1000, 1);
  const Calibration done = calibrate_and_judge(request, kFacts, val, "val", nullptr, "");
  CHECK(done.calibrated_on == "250 images of val");
  CHECK(done.judged_on == "750 images of val");
  // The two are parts: their labels together are those of all.
  CHECK(at::equal(at::bincount(at::cat({done.calibration.labels, done.judged.labels})), at::bincount(val.labels)));
  request.share = 0.0001;
  CHECK_THROWS_AS(calibrate_and_judge(request, kFacts, val, "val", nullptr, ""), ConfigError);
}

TEST_CASE("a temperature is fitted to images that do not calibrate", "[fast]") {
  CalibrationRequest request = request_for({"error:0.1"});
  request.fit_temperature = true;
  const SplitScores val = drawn_scores(10000, 1), test = drawn_scores(5000, 2);
  const Calibration done = calibrate_and_judge(request, kFacts, val, "val", &test, "test");
  CHECK(done.temperature == Approx(3).epsilon(0.1));
  CHECK(done.temperature_images == 2000);
  CHECK(done.calibrated_on == "8000 images of val");
  CHECK(done.error_after < done.error_before / 5);
  CHECK(done.rules[0].quality.coverage > 0.9);
  CHECK_THAT(format_calibration(done), Contains("fitted to 2,000 other images"));
}

TEST_CASE("where nothing is guaranteed, every calibrated rule says so", "[fast]") {
  CalibrationRequest request = request_for({"conformal:lac:0.1"});
  request.no_guarantee = "the images chose the epoch";
  const SplitScores val = drawn_scores(100, 1);
  const Calibration done = calibrate_and_judge(request, kFacts, val, "val", &val, "val");
  CHECK(done.rules[0].rule.guarantee == "no guarantee: the images chose the epoch");
}

TEST_CASE("sigmoids have no temperature and no calibration error of a softmax", "[fast]") {
  const ClassFacts facts{.classes = 8, .probability = ProbabilityKind::kSigmoid};
  CalibrationRequest request = request_for({"conformal:lac:0.1"});
  const SplitScores val = drawn_scores(100, 1);
  const Calibration done = calibrate_and_judge(request, facts, val, "val", &val, "val");
  CHECK(std::isnan(done.error_before));
  CHECK_THAT(format_calibration(done), !Contains("calibration error"));
  request.fit_temperature = true;
  CHECK_THROWS_AS(calibrate_and_judge(request, facts, val, "val", &val, "val"), ConfigError);
}

TEST_CASE("the usual rules suit the classes", "[fast]") {
  const auto names_for = [](const ClassFacts& facts) {
    std::vector<std::string> names;
    for (const SetRule& rule : usual_rules(facts)) names.push_back(rule.name());
    return names;
  };
  CHECK(names_for(kFacts) == std::vector<std::string>{"top:5", "average:5", "error:0.1", "average-error:0.1",
                                                      "conformal:lac:0.1", "conformal:aps:0.1", "conformal:pas:0.1",
                                                      "conformal:lac:0.1:classwise"});
  CHECK(names_for({.classes = 3, .probability = ProbabilityKind::kSigmoid}) ==
        std::vector<std::string>{"average-error:0.1", "conformal:lac:0.1", "conformal:lac:0.1:classwise"});
}

TEST_CASE("the picture has a panel for classes and one over alpha", "[fast]") {
  const SplitScores val = drawn_scores(500, 1);
  CalibrationRequest request = request_for({"top:2", "conformal:lac:0.1"});
  CHECK(calibrate_and_judge(request, kFacts, val, "val", &val, "val").rules[1].by_alpha.empty());
  request.by_alpha = true;
  const Calibration done = calibrate_and_judge(request, kFacts, val, "val", &val, "val");
  CHECK(done.rules[0].by_alpha.empty());
  CHECK(calibration_json(done).at("rules").at(1).at("by_alpha").size() == 8);
  const Chart chart = calibration_chart(done);
  REQUIRE(chart.panels.size() == 2);
  REQUIRE(chart.panels[0].series.size() == 1);
  CHECK(chart.panels[0].series[0].points.size() == 8);
  const auto& curve = chart.panels[1].series.at(0).points;
  CHECK(curve.front().x < curve.back().x);
  CHECK(curve.front().y < curve.back().y);
}

}  // namespace settrain
