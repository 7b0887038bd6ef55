#include <ATen/ATen.h>

#include <limits>
#include <nlohmann/json.hpp>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/rules/stored_rules.h"
#include "src/core/error.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Json = nlohmann::ordered_json;

CalibratedRule calibrated_rule(const std::string& name) {
  const SplitScores split = test::random_split(4, 60, 5, at::kDouble, 0, 4);
  ClassFacts facts;
  facts.classes = 5;
  facts.train_counts = {3, 1, 4, 0, 5};
  facts.superclass_of = {0, 0, 1, 1, 2};
  return calibrate(parse_set_rule(name), facts, split.scores, split.labels, 0xFFFFFFFFFFFFFFFF);
}

TEST_CASE("a rule keeps every bit as JSON") {
  const at::Tensor scores = at::randn({50, 5});
  for (const char* name : {"top:2", "average:1.5", "error:0.1", "average-error:0.1", "conformal:lac:0.1",
                           "conformal:aps(randomised=true):0.1:classwise", "conformal:pas:0.1:superclass",
                           "conformal:raps:0.2:rc3p", "conformal:lac:0.1:fuzzy(1e-5)", "conformal:lac:0.001"}) {
    CAPTURE(name);
    CalibratedRule rule = calibrated_rule(name);
    if (!rule.thresholds.empty()) rule.thresholds[0] = DoubleDouble::sum(rule.thresholds[0].high, 1e-40);
    const CalibratedRule read = rule_from_json(Json::parse(to_json(rule).dump()), 5);
    CHECK(read.rule == rule.rule);
    CHECK((read.thresholds == rule.thresholds));
    CHECK(read.most_ranks == rule.most_ranks);
    CHECK(read.class_factor == rule.class_factor);
    CHECK(read.seed == rule.seed);
    CHECK(read.images == rule.images);
    CHECK(read.guarantee == rule.guarantee);
    CHECK(read.notes == rule.notes);
    CHECK(sets_of(read, scores).equal(sets_of(rule, scores)));
  }
}

TEST_CASE("infinite numbers are texts") {
  const Json json = to_json(calibrated_rule("conformal:pas:0.001"));
  CHECK(json["thresholds"] == Json::array({"infinity"}));
  CHECK(json["class_factor"][3] == "infinity");
  Json below = json;
  below["thresholds"] = {"-infinity"};
  CHECK(rule_from_json(below, 5).thresholds[0] == -std::numeric_limits<double>::infinity());
}

TEST_CASE("a low part stands beside the high one") {
  CalibratedRule rule = calibrated_rule("conformal:lac:0.3");
  rule.thresholds = {DoubleDouble::sum(-1, 1e-30)};
  const Json json = to_json(rule);
  CHECK(json["version"] == 2);
  CHECK(json["thresholds"][0] == Json::array({-1.0, 1e-30}));
  CHECK(rule_from_json(json, 5).thresholds[0] == DoubleDouble::sum(-1, 1e-30));
  rule.thresholds = {-0.5};
  CHECK(to_json(rule)["thresholds"] == Json::array({-0.5}));
}

TEST_CASE("rules of version 1 are read where they mean the same sets") {
  const at::Tensor scores = at::randn({200, 5}).mul(3);
  const auto old = [](const std::string& name, double threshold) {
    Json json = to_json(calibrated_rule(name));
    json.erase("version");
    for (Json& value : json["thresholds"]) value = threshold;
    return json;
  };
  // lac was stored as 1 - p.
  const CalibratedRule lac = rule_from_json(old("conformal:lac:0.1", 0.875), 5);
  CHECK(lac.thresholds[0] == DoubleDouble(-0.125));
  CHECK(sets_of(lac, scores).equal(at::softmax(scores.to(at::kDouble), 1).ge(0.125)));
  CHECK(rule_from_json(old("conformal:lac:0.1:classwise", 1), 5).thresholds[4] == DoubleDouble(0));
  CHECK(rule_from_json(old("conformal:pas:0.1", -0.25), 5).thresholds[0] == DoubleDouble(-0.25));
  CHECK(rule_from_json(old("average-error:0.1", 0.25), 5).thresholds[0] == DoubleDouble(0.25));
  CHECK_NOTHROW(rule_from_json(old("top:2", 0), 5));
  // A threshold within float32's rounding of p = 1 held more than it would today.
  CHECK_THROWS_AS(rule_from_json(old("conformal:lac:0.1", 0), 5), OutdatedRule);
  CHECK_THROWS_AS(rule_from_json(old("conformal:lac:0.1:classwise", 1e-7), 5), OutdatedRule);
  CHECK_THROWS_AS(rule_from_json(old("average-error:0.1", 1), 5), OutdatedRule);
  CHECK_THROWS_AS(rule_from_json(old("conformal:pas:0.1", -13.0 / 4), 5), OutdatedRule);  // a class' 1 / pi
  CHECK_NOTHROW(rule_from_json(old("conformal:lac:0.1", 1e-5), 5));
  Json pair = old("conformal:lac:0.1", 0.5);
  pair["thresholds"] = {Json::array({0.5, 1e-20})};
  CHECK_THROWS_AS(rule_from_json(pair, 5), RunError);
  for (const char* name :
       {"conformal:aps:0.1", "conformal:raps(randomised=true):0.1", "conformal:saps:0.2:classwise"}) {
    CHECK_THROWS_AS(rule_from_json(old(name, 0.9), 5), OutdatedRule);
    CHECK_THROWS_WITH(rule_from_json(old(name, 0.9), 5), Catch::Contains(name));
  }
}

TEST_CASE("JSON that to_json() does not write is refused") {
  const Json good = to_json(calibrated_rule("conformal:pas:0.3:rc3p"));
  CHECK_NOTHROW(rule_from_json(good, 5));
  CHECK_THROWS_AS(rule_from_json(good, 6), RunError);
  for (const Json& other : {Json(), Json(3), Json::array(), Json::object(), Json("conformal:lac:0.1")}) {
    CHECK_THROWS_AS(rule_from_json(other, 5), RunError);
  }
  for (const auto& [key, value] : good.items()) {
    Json missing = good;
    missing.erase(key);
    if (key != "version") {  // version 1 has none
      CHECK_THROWS_AS(rule_from_json(missing, 5), RunError);
      CHECK_THROWS_WITH(rule_from_json(missing, 5), Catch::Contains("'" + key + "'"));
    }
    for (const Json& other : {Json(), Json(-1), Json(1.5), Json::object(), Json("\xFF"), Json::array({Json::object()}),
                              Json::array({1, 2, 3, 4, Json()}), Json::array({1, 2, 3, 4, -1e300})}) {
      Json wrong = good;
      wrong[key] = other;
      CAPTURE(key, other.dump(-1, ' ', true, Json::error_handler_t::replace));
      if (key == "thresholds" && other.is_array() && other.back() == Json(-1e300)) continue;
      CHECK_THROWS_AS(rule_from_json(wrong, 5), RunError);
    }
  }
  struct Change {
    std::string key;
    Json value;
  };
  for (const auto& [key, value] : std::vector<Change>{{"rule", "conformal:pas:0.3"},
                                                      {"rule", "top:6"},
                                                      {"rule", "conformal:pas:2:rc3p"},
                                                      {"probability", "softmin"},
                                                      {"most_ranks", {1, 2, 3, 4, 6}},
                                                      {"most_ranks", {0, 2, 3, 4, 5}},
                                                      {"most_ranks", {1, 2, 3, 4, 18446744073709551615U}},
                                                      {"class_factor", {1, 2, 3, 4, "nan"}},
                                                      {"images", 18446744073709551615U},
                                                      {"version", 0},
                                                      {"version", 3},
                                                      {"thresholds", {Json::array({-0.25, 0.1}), 1, 1, 1, 1}},
                                                      {"thresholds", {Json::array({-0.25}), 1, 1, 1, 1}},
                                                      {"thresholds", {Json::array({"infinity", 0}), 1, 1, 1, 1}},
                                                      {"classes", 18446744073709551615U}}) {
    Json wrong = good;
    wrong[key] = value;
    CAPTURE(key, value);
    CHECK_THROWS_AS(rule_from_json(wrong, 5), RunError);
  }
  Json sums = to_json(calibrated_rule("conformal:aps:0.1"));
  sums["probability"] = "sigmoid";
  CHECK_THROWS_AS(rule_from_json(sums, 5), RunError);
}

TEST_CASE("text with changed bytes is refused, or is a rule that is written as it was read") {
  at::manual_seed(7);
  for (const char* name : {"conformal:raps(lambda=0.5):0.3:rc3p", "conformal:lac:0.1:clustered(share=0.5)", "top:3"}) {
    const std::string good = to_json(calibrated_rule(name)).dump();
    for (int i = 0; i < 1500; ++i) {
      std::string text = good;
      for (int64_t changes = 1 + i % 3; changes > 0; --changes) {
        const auto place = static_cast<size_t>(at::randint(std::ssize(text), {1}, at::kLong).item<int64_t>());
        text[place] = "0123456789-.e:()=,[]{}\"ax\xC3"[at::randint(27, {1}, at::kLong).item<int64_t>()];
      }
      const Json json = Json::parse(text, nullptr, false);
      CAPTURE(text);
      try {
        const Json written = to_json(rule_from_json(json, 5));
        CHECK(to_json(rule_from_json(written, 5)) == written);
      } catch (const RunError&) {
      }
    }
  }
}

}  // namespace
}  // namespace settrain
