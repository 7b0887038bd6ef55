#include "src/inference/calibration.h"

#include <ATen/ATen.h>
#include <fmt/ranges.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "metrics/sets/temperature.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

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

TEST_CASE("rules are calibrated on some images and judged on others") {
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

TEST_CASE("a share of the images calibrates and the rest judges") {
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

TEST_CASE("a temperature is fitted to images that do not calibrate") {
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

TEST_CASE("a temperature that cannot be fitted is refused, and its images still do not calibrate") {
  CalibrationRequest request = request_for({"conformal:lac:0.1"});
  request.fit_temperature = true;
  SplitScores val = drawn_scores(60, 1);
  val.labels = val.scores.argmax(1);  // all right
  const SplitScores test = drawn_scores(500, 2);
  const Calibration done = calibrate_and_judge(request, kFacts, val, "val", &test, "test");
  CHECK(done.temperature == 1);
  CHECK(done.temperature_images == 12);
  CHECK_THAT(done.temperature_refused, Contains("the largest score"));
  CHECK(done.calibrated_on == "48 images of val");
  CHECK(done.error_after == done.error_before);
  CHECK(at::equal(done.judged.scores, test.scores));
  REQUIRE(done.warnings.size() == 1);
  CHECK_THAT(done.warnings[0], Contains("12 images") && Contains(done.temperature_refused));
  const std::string text = format_calibration(done);
  CHECK_THAT(text, Contains("\nTemperature 1: ") && Contains("12 other images") && Contains("the largest score"));
  const auto json = calibration_json(done);
  CHECK(json.at("temperature") == 1);
  CHECK(json.at("temperature_images") == 12);
  CHECK(json.at("temperature_refused") == done.temperature_refused);
  CHECK(json.at("warnings").size() == 1);
}

TEST_CASE("a temperature for small sets is found on images that do not calibrate") {
  const SplitScores val = drawn_scores(2000, 1), test = drawn_scores(2000, 2);
  CalibrationRequest request = request_for({"conformal:aps:0.1"});
  request.efficient_alpha = 0.1;
  const Calibration done = calibrate_and_judge(request, kFacts, val, "val", &test, "test");
  CHECK(done.temperature_images == 400);
  CHECK(done.calibrated_on == "1600 images of val");
  CHECK(done.temperature >= kLeastEfficient);
  CHECK(done.temperature < 1);
  CHECK(done.rules[0].quality.coverage == Approx(0.9).margin(0.03));
}

TEST_CASE("few images fit a temperature with a warning, enough without one") {
  CalibrationRequest request = request_for({"conformal:lac:0.1"});
  request.fit_temperature = true;
  const SplitScores test = drawn_scores(500, 2);
  const Calibration few = calibrate_and_judge(request, kFacts, drawn_scores(245, 1), "val", &test, "test");
  CHECK(few.temperature != 1);
  CHECK(few.temperature_images == 49);
  CHECK(few.temperature_refused.empty());
  REQUIRE(few.warnings.size() == 1);
  CHECK_THAT(few.warnings[0], Contains("49 images") && Contains("50"));
  CHECK(calibration_json(few).at("temperature_refused").is_null());
  CHECK_THAT(format_calibration(few), Contains(few.warnings[0].substr(0, 20)));
  const Calibration enough = calibrate_and_judge(request, kFacts, drawn_scores(250, 1), "val", &test, "test");
  CHECK(enough.temperature_images == 50);
  CHECK(enough.warnings.empty());
  CHECK(calibration_json(enough).at("warnings").empty());
}

TEST_CASE("labels that are off by one show in the accuracy") {
  const CalibrationRequest request = request_for({"conformal:lac:0.1"});
  SplitScores val = drawn_scores(400, 1), test = drawn_scores(300, 2);
  const auto right = [](const SplitScores& scores) {
    return scores.scores.argmax(1).eq(scores.labels).to(at::kDouble).mean().item<double>();
  };
  const Calibration good = calibrate_and_judge(request, kFacts, val, "val", &test, "test");
  CHECK(good.calibration_top1 == Approx(right(val)));
  CHECK(good.judged_top1 == Approx(right(test)));
  CHECK(good.calibration_top1 > 0.5);
  CHECK(good.warnings.empty());
  const auto json = calibration_json(good);
  CHECK(json.at("top1").at("calibration") == good.calibration_top1);
  CHECK(json.at("top1").at("judged") == good.judged_top1);
  CHECK_THAT(format_calibration(good), Contains("Top-1 accuracy: "));

  // One split alone is wrong, by one more or by one less; the last class becomes the first one, and the reverse.
  const auto shifted = [](const SplitScores& scores, int64_t by) {
    return SplitScores{scores.scores, (scores.labels + by).remainder(8)};
  };
  const SplitScores larger = shifted(test, 1), smaller = shifted(val, -1);
  const Calibration test_wrong = calibrate_and_judge(request, kFacts, val, "val", &larger, "test");
  REQUIRE(test_wrong.warnings.size() == 1);
  CHECK_THAT(test_wrong.warnings[0], Contains("300 images of test") && !Contains("of val") && Contains("smaller by 1"));
  const Calibration both_wrong = calibrate_and_judge(request, kFacts, smaller, "val", &larger, "test");
  REQUIRE(both_wrong.warnings.size() == 1);
  CHECK_THAT(both_wrong.warnings[0], Contains("of test") && Contains("of val") && Contains("larger by 1"));
  // Labels of another order: no shift helps.
  const SplitScores random{test.scores, at::randint(8, {300}, at::kLong)};
  const Calibration guessed = calibrate_and_judge(request, kFacts, val, "val", &random, "test");
  REQUIRE(guessed.warnings.size() == 1);
  CHECK_THAT(guessed.warnings[0], !Contains("by 1"));
  // A handful of images says nothing.
  const SplitScores few{random.scores.narrow(0, 0, 20), random.labels.narrow(0, 0, 20)};
  CHECK(calibrate_and_judge(request, kFacts, val, "val", &few, "test").warnings.empty());
}

TEST_CASE("a rule whose sets are mostly full or empty has a note with the share") {
  const SplitScores val = drawn_scores(2000, 1), test = drawn_scores(1000, 2);
  const auto notes_of = [&](const std::string& name, const SplitScores& calibrating, const SplitScores& judging) {
    const Calibration done = calibrate_and_judge(request_for({name}), kFacts, calibrating, "val", &judging, "test");
    INFO(name << ": full " << done.rules[0].quality.full << ", empty " << done.rules[0].quality.empty);
    CHECK(calibration_json(done).at("rules").at(0).at("notes") == done.rules[0].rule.notes);
    std::string all;
    for (const std::string& note : done.rules[0].rule.notes) all += note + "\n";
    return all;
  };
  for (const char* name : {"conformal:lac:0.1", "conformal:aps:0.1", "error:0.1", "average:2", "top:8"}) {
    CHECK_THAT(notes_of(name, val, test), !Contains("of the sets"));
  }
  const SplitScores guessed{val.scores, at::randint(8, {2000}, at::kLong)},
      judged{test.scores, at::randint(8, {1000}, at::kLong)};
  for (const char* name : {"conformal:lac:0.001", "conformal:aps:0.001", "conformal:aps(randomised=true):0.001"}) {
    const std::string notes = notes_of(name, guessed, judged);
    CHECK_THAT(notes, (Contains("% of the sets have all 8 classes: ") || Contains("Every set holds all classes")) &&
                          Contains("a larger alpha"));
    const bool is_advised = notes.find("randomised=true") != std::string::npos;
    CHECK(is_advised == (std::string(name) == "conformal:aps:0.001"));
  }
  const SplitScores few{val.scores.narrow(0, 0, 5), val.labels.narrow(0, 0, 5)};
  CHECK_THAT(notes_of("conformal:lac:0.1", few, test), Contains("100.0 % of the sets") && Contains("more calibration"));
  CHECK_THAT(notes_of("average:7.99", val, test), Contains("a smaller K"));
  CHECK_THAT(notes_of("average-error:0.0001", guessed, judged), Contains("a larger E"));

  CHECK_THAT(notes_of("conformal:lac:0.8", val, test),
             Contains("% of the sets are empty: ") && Contains("a smaller alpha") && Contains("nonempty=true"));
  CHECK_THAT(notes_of("conformal:aps:0.8", val, test), Contains("a smaller alpha") && Contains("most probable"));
  CHECK_THAT(notes_of("average-error:0.8", val, test), Contains("a smaller E"));
  CHECK_THAT(notes_of("average:0.3", val, test), Contains("a larger K"));
  // The images that judge are other ones: their probabilities are smaller.
  const SplitScores other{test.scores / 20, test.labels};
  CHECK_THAT(notes_of("conformal:lac:0.5", val, other), Contains("are empty") && Contains("50 % are wanted"));
}

TEST_CASE("where nothing is guaranteed, every calibrated rule says so") {
  CalibrationRequest request = request_for({"conformal:lac:0.1"});
  request.no_guarantee = "the images chose the epoch";
  const SplitScores val = drawn_scores(100, 1);
  const Calibration done = calibrate_and_judge(request, kFacts, val, "val", &val, "val");
  CHECK(done.rules[0].rule.guarantee == "no guarantee: the images chose the epoch");
}

TEST_CASE("images that are all of one class are warned of") {
  SplitScores val = drawn_scores(40, 1);
  val.labels.fill_(1);
  const auto warnings = [&](const ClassFacts& facts) {
    return calibrate_and_judge(request_for({"conformal:lac:0.2"}), facts, val, "val", &val, "val").warnings;
  };
  CHECK_THAT(fmt::format("{}", fmt::join(warnings(kFacts), "\n")),
             Contains("40 images of val have one label only, 1, of 8 classes"));
  val.scores = val.scores.narrow(1, 0, 1);
  val.labels.fill_(0);
  CHECK_THAT(fmt::format("{}", fmt::join(warnings({.classes = 1}), "\n")), Contains("one column of scores"));
}

TEST_CASE("images that judge and calibrate are known by their scores") {
  const CalibrationRequest request = request_for({"conformal:lac:0.1", "top:2"});
  const SplitScores val = drawn_scores(400, 1), test = drawn_scores(400, 2);
  const auto judged_by = [&](const SplitScores& judging) {
    return calibrate_and_judge(request, kFacts, val, "val.npz", &judging, "test.npz");
  };
  CHECK(judged_by(test).warnings.empty());
  CHECK_THAT(judged_by(test).rules[0].rule.guarantee, !Contains("no guarantee"));
  const SplitScores mixed{at::cat({test.scores, val.scores.narrow(0, 0, 100)}),
                          at::cat({test.labels, val.labels.narrow(0, 0, 100)})};
  const Calibration done = judged_by(mixed);
  REQUIRE(done.warnings.size() == 1);
  CHECK_THAT(done.warnings[0], Contains("100 of the 500 images"));
  CHECK_THAT(done.rules[0].rule.guarantee, Contains("no guarantee: 100 of the 500 images"));
  // The same where some images come twice among those that calibrate, and in another precision.
  const SplitScores twice{at::cat({val.scores, val.scores}), at::cat({val.labels, val.labels})};
  CalibrationRequest half = request_for({"top:2"});
  half.share = 0.5;
  const Calibration divided = calibrate_and_judge(half, kFacts, twice, "val.npz", nullptr, "");
  REQUIRE(divided.warnings.size() == 1);
  CHECK_THAT(divided.warnings[0], Contains("have the very scores of images that calibrate"));
  const SplitScores narrow{val.scores.to(at::kFloat), val.labels};
  CHECK_THAT(judged_by(narrow).warnings.at(0), Contains("400 of the 400 images"));
  // Rounded scores are equal for different images too: of two classes, probabilities of four and five digits.
  for (const double digits : {1e4, 1e5}) {
    const auto binary = [&](const SplitScores& scores) {
      const at::Tensor p = at::softmax(scores.scores.narrow(1, 0, 2).div(3), 1).mul(digits).round().div(digits);
      return SplitScores{p.clamp_min(1 / digits).log(), scores.labels.remainder(2)};
    };
    const SplitScores some = binary(drawn_scores(10'000, 3)), others = binary(drawn_scores(10'000, 4));
    for (const auto& warning :
         calibrate_and_judge(request_for({"top:1"}), {.classes = 2}, some, "val", &others, "test").warnings) {
      CHECK_THAT(warning, !Contains("the same images"));
    }
  }
  const SplitScores rounded{val.scores.div(20).round(), val.labels};
  for (const auto& warning : calibrate_and_judge(request, kFacts, rounded, "val.npz", &rounded, "test.npz").warnings) {
    CHECK_THAT(warning, !Contains("the same images"));
  }
}

namespace {

// Images with the scores log P(y | x) where every class has the same share, and labels by these shares.
SplitScores with_shares(int64_t images, const std::vector<double>& shares, int64_t seed) {
  at::manual_seed(static_cast<uint64_t>(seed));
  const at::Tensor labels = at::multinomial(at::tensor(shares, at::kDouble), images, /*replacement=*/true);
  const at::Tensor means = at::eye(8, at::kDouble).index_select(0, labels);
  return {at::randn({images, 8}, at::kDouble).add(means.mul(2)).mul(2), labels};
}

}  // namespace

TEST_CASE("rules for a place hold there, with smaller sets than the others") {
  const std::vector<double> even(8, 0.125), alps{0.6, 0.2, 0.1, 0.1, 0, 0, 0, 0};
  CalibrationRequest request = request_for({"conformal:lac:0.1", "top:2", "conformal:tree(nodes=2):0.1"});
  request.of_model = even;
  request.places = {{.name = "alps", .source = "'alps.csv'", .prior = alps},
                    {.name = "found", .source = "EM", .unlabelled = with_shares(4000, alps, 5).scores}};
  ClassFacts facts = kFacts;
  facts.taxonomy = superclass_taxonomy({"A", "B"}, {0, 0, 0, 0, 1, 1, 1, 1});
  const SplitScores val = with_shares(6000, even, 1), test = with_shares(8000, even, 2);
  const Calibration done = calibrate_and_judge(request, facts, val, "val", &test, "test");
  CHECK(done.calibrated_on == "4800 images of val");  // a fifth is for the estimates
  REQUIRE(done.places.size() == 2);
  for (const JudgedPlace& judged : done.places) {
    CAPTURE(judged.place.name);
    REQUIRE(judged.place.rules.size() == 2);  // the tree's answers are for no place
    CHECK(judged.quality[0].rule == "conformal:lac:0.1");
    CHECK(judged.quality[0].coverage == Approx(0.9).margin(0.025));
    CHECK(judged.quality[0].mean_size < judged.quality[0].plain_mean_size - 0.1);
    CHECK(judged.quality[1].coverage > judged.quality[1].plain_coverage);
    for (size_t c = 0; c < 8; ++c) CHECK(judged.place.prior[c] == Approx(alps[c]).margin(0.02));
  }
  CHECK(done.places[0].by_confusion.empty());
  for (size_t c = 0; c < 8; ++c) CHECK(done.places[1].by_confusion[c] == Approx(alps[c]).margin(0.05));
  CHECK(done.places[0].judging_images < 4000);
  const std::string text = format_calibration(done);
  CHECK_THAT(text, Contains("The place alps, by 'alps.csv'.") && Contains("BBSE, %") && Contains("left out: rule"));
  CHECK(calibration_json(done).at("places").at(1).at("prior").size() == 8);
}

TEST_CASE("sigmoids have no temperature and no calibration error of a softmax") {
  const ClassFacts facts{.classes = 8, .probability = ProbabilityKind::kSigmoid};
  CalibrationRequest request = request_for({"conformal:lac:0.1"});
  const SplitScores val = drawn_scores(100, 1);
  const Calibration done = calibrate_and_judge(request, facts, val, "val", &val, "val");
  CHECK(std::isnan(done.error_before));
  CHECK_THAT(format_calibration(done), !Contains("calibration error"));
  request.fit_temperature = true;
  CHECK_THROWS_AS(calibrate_and_judge(request, facts, val, "val", &val, "val"), ConfigError);
}

TEST_CASE("the usual rules suit the classes") {
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

TEST_CASE("the picture has a panel for classes and one over alpha") {
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
