#include "metrics/sets/rules/stored_rules.h"

#include <limits>
#include <nlohmann/json.hpp>
#include <random>

#include "metrics/sets/rules/rule_terms.h"
#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;
using Json = nlohmann::ordered_json;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// As calibration could leave it, for five classes; the fourth has no training images.
CalibratedRule calibrated_rule(const std::string& name) {
  CalibratedRule rule{.rule = parse_set_rule(name), .classes = 5};
  const bool is_conformal = rule.rule.kind == SetRule::Kind::kConformal;
  if (needs_images(rule.rule)) {
    const bool is_by_class = is_conformal && rule.rule.threshold != ConformalThreshold::kMarginal;
    for (int64_t i = 0; i < (is_by_class ? 5 : 1); ++i)
      rule.thresholds.push_back(DoubleDouble::sum(-1.0 / (3 + i), 1e-20));
    rule.images = 60;
  }
  if (is_conformal && rule.rule.threshold == ConformalThreshold::kRc3p) rule.most_ranks = {1, 5, 2, 3, 4};
  if (is_conformal && rule.rule.score == ConformalScore::kPas)
    rule.class_factor = {13.0 / 3, 13, 13.0 / 4, kInfinity, 13.0 / 5};
  if (is_conformal && rule.rule.score == ConformalScore::kTree) rule.tree = {5, 5, 6, 6, 6, 6, -1};
  rule.seed = 0xFFFFFFFFFFFFFFFF;
  rule.guarantee = "no guarantee: a test";
  rule.notes = {"1 class has no training images"};
  return rule;
}

// As calibration could leave them, for three classes.
StoredRules some_rules() {
  CalibratedRule rare{.rule = parse_set_rule("conformal:pas:0.1:rc3p"), .classes = 3};
  rare.thresholds = {-0.1, 1.0 / 3, kInfinity};
  rare.most_ranks = {1, 3, 2};
  rare.class_factor = {1.5, kInfinity, 0};
  rare.seed = 0xFFFFFFFFFFFFFFFF;
  rare.images = 20;
  rare.guarantee = "no guarantee: a test";
  rare.notes = {"2 classes have too few images"};
  const CalibratedRule most_likely{.rule = parse_set_rule("top:2"), .classes = 3};
  return {.temperature = 0.7, .calibrated_on = "20 images", .checkpoint_sha256 = "abc", .rules = {rare, most_likely}};
}

// One rule as JSON.

TEST_CASE("a rule keeps every bit as JSON") {
  for (const char* name :
       {"top:2", "conformal:tree(nodes=2):0.1", "average:1.5", "error:0.1", "average-error:0.1", "conformal:lac:0.1",
        "conformal:aps(randomised=true):0.1:classwise", "conformal:pas:0.1:superclass", "conformal:raps:0.2:rc3p",
        "conformal:lac:0.1:fuzzy(1e-5)", "conformal:lac:0.001"}) {
    CAPTURE(name);
    const CalibratedRule rule = calibrated_rule(name);
    const CalibratedRule read = rule_from_json(Json::parse(to_json(rule).dump()), 5);
    CHECK(read.rule == rule.rule);
    CHECK((read.thresholds == rule.thresholds));
    CHECK(read.most_ranks == rule.most_ranks);
    CHECK(read.class_factor == rule.class_factor);
    CHECK(read.tree == rule.tree);
    CHECK(read.seed == rule.seed);
    CHECK(read.images == rule.images);
    CHECK(read.guarantee == rule.guarantee);
    CHECK(read.notes == rule.notes);
  }
}

TEST_CASE("infinite numbers are texts") {
  CalibratedRule rule = calibrated_rule("conformal:pas:0.001");
  rule.thresholds = {kInfinity};
  const Json json = to_json(rule);
  CHECK(json["thresholds"] == Json::array({"infinity"}));
  CHECK(json["class_factor"][3] == "infinity");
  Json below = json;
  below["thresholds"] = {"-infinity"};
  CHECK(rule_from_json(below, 5).thresholds[0] == -kInfinity);
}

TEST_CASE("a low part stands beside the high one") {
  CalibratedRule rule = calibrated_rule("conformal:lac:0.3");
  rule.thresholds = {DoubleDouble::sum(-1, 1e-30)};
  const Json json = to_json(rule);
  CHECK(json["version"] == 3);
  CHECK(json["thresholds"][0] == Json::array({-1.0, 1e-30}));
  CHECK(rule_from_json(json, 5).thresholds[0] == DoubleDouble::sum(-1, 1e-30));
  rule.thresholds = {-0.5};
  CHECK(to_json(rule)["thresholds"] == Json::array({-0.5}));
}

TEST_CASE("rules of version 2 are read but for thresholds of probabilities that float64 has not") {
  CalibratedRule rule = calibrated_rule("conformal:aps:0.3");
  const auto read = [&](DoubleDouble threshold, int64_t version) {
    rule.thresholds = {threshold};
    Json json = to_json(rule);
    json["version"] = version;
    return rule_from_json(json, 5).thresholds[0];
  };
  CHECK(read(-1e-100, 2) == DoubleDouble(-1e-100));
  CHECK(read(0, 2) == DoubleDouble(0));
  CHECK_THROWS_AS(read(-1e-261, 2), OutdatedRule);
  CHECK_THROWS_AS(read(DoubleDouble::sum(-1, 1e-261), 2), OutdatedRule);
  CHECK(read(-1e-261, 3) == DoubleDouble(-1e-261));
}

TEST_CASE("thresholds of average that were one rounded double hold what they held") {
  CalibratedRule rule = calibrated_rule("average:1.5");
  const auto read = [&](double threshold) {
    rule.thresholds = {threshold};
    return rule_from_json(to_json(rule), 5);
  };
  CHECK(read(0.5).thresholds[0] == DoubleDouble(0.5));
  CHECK(read(0.75).thresholds[0] == DoubleDouble::sum(0.75, -0x1p-54));
  CHECK(read(1).thresholds[0] == DoubleDouble::sum(1, -0x1p-54));
}

TEST_CASE("rules of version 1 are read where they mean the same sets") {
  const auto old = [](const std::string& name, double threshold) {
    Json json = to_json(calibrated_rule(name));
    json.erase("version");
    for (Json& value : json["thresholds"]) value = threshold;
    return json;
  };
  // lac was stored as 1 - p.
  const CalibratedRule lac = rule_from_json(old("conformal:lac:0.1", 0.875), 5);
  CHECK(lac.thresholds[0] == DoubleDouble(-0.125));
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
                                                      {"version", 4},
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
  std::mt19937 random(7);
  for (const char* name : {"conformal:raps(lambda=0.5):0.3:rc3p", "conformal:lac:0.1:clustered(share=0.5)", "top:3"}) {
    const std::string good = to_json(calibrated_rule(name)).dump();
    for (int i = 0; i < 1500; ++i) {
      std::string text = good;
      for (int64_t changes = 1 + i % 3; changes > 0; --changes) {
        const auto place = random() % text.size();
        text[place] = "0123456789-.e:()=,[]{}\"ax\xC3"[random() % 27];
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

// All rules of a model as text.

TEST_CASE("rules come back from text to the bit") {
  const StoredRules rules = some_rules();
  const StoredRules read = stored_rules_from_text(to_text(rules), 3, "a file");
  CHECK(read.temperature == rules.temperature);
  CHECK(read.calibrated_on == rules.calibrated_on);
  CHECK(read.checkpoint_sha256 == rules.checkpoint_sha256);
  REQUIRE(read.rules.size() == 2);
  CHECK(read.rules[0].rule == rules.rules[0].rule);
  CHECK((read.rules[0].thresholds == rules.rules[0].thresholds));
  CHECK(read.rules[0].most_ranks == rules.rules[0].most_ranks);
  CHECK(read.rules[0].class_factor == rules.rules[0].class_factor);
  CHECK(read.rules[0].seed == rules.rules[0].seed);
  CHECK(read.rules[0].notes == rules.rules[0].notes);
  CHECK(to_text(read) == to_text(rules));
}

TEST_CASE("the rule that answers is the chosen one, else the first that leaves a class out, lac before others") {
  const auto rule = [](const char* name, double threshold) {
    return CalibratedRule{.rule = parse_set_rule(name), .classes = 3, .thresholds = {threshold}, .guarantee = "g"};
  };
  StoredRules rules{.calibrated_on = "20 images", .rules = {rule("conformal:lac:0.01", kInfinity)}};
  rules.rules.push_back({.rule = parse_set_rule("top:2"), .classes = 3, .guarantee = "g"});
  CHECK(is_always_full(rules.rules[0]));
  CHECK_FALSE(is_always_full(rules.rules[1]));
  CHECK(default_rule(rules.rules, rules.chosen) == nullptr);
  rules.rules.push_back(rule("average:2", 0.2));
  CHECK(default_rule(rules.rules, rules.chosen)->rule.name() == "average:2");
  rules.rules.push_back(rule("conformal:lac:0.1", -0.2));
  rules.rules.push_back(rule("conformal:lac:0.05", -0.1));
  CHECK(default_rule(rules.rules, rules.chosen)->rule.name() == "conformal:lac:0.1");
  rules.chosen = "top:2";
  const StoredRules read = stored_rules_from_text(to_text(rules), 3, "a file");
  CHECK(default_rule(read.rules, read.chosen)->rule.name() == "top:2");
  rules.chosen = "top:1";
  CHECK_THROWS_WITH(stored_rules_from_text(to_text(rules), 3, "a file"), Contains("\"top:1\" is none of the rules"));
}

TEST_CASE("a file of version 1 keeps its rules, but for those that mean something else today") {
  // As version 1 wrote them, for three classes.
  const std::string text =
      R"({"rules_version": 1, "temperature": 1.5, "calibrated_on": "20 images of val", "checkpoint_sha256": "abc", "rules": [
      {"rule": "conformal:lac:0.1", "probability": "softmax", "classes": 3, "thresholds": [0.75], "most_ranks": [],
       "class_factor": [], "seed": 1, "images": 20, "guarantee": "g", "notes": []},
      {"rule": "conformal:aps:0.1", "probability": "softmax", "classes": 3, "thresholds": [0.99999994], "most_ranks": [],
       "class_factor": [], "seed": 1, "images": 20, "guarantee": "g", "notes": []},
      {"rule": "top:2", "probability": "softmax", "classes": 3, "thresholds": [], "most_ranks": [], "class_factor": [],
       "seed": 1, "images": 0, "guarantee": "no guarantee: g", "notes": []}]})";
  const StoredRules read = stored_rules_from_text(text, 3, "a file");
  REQUIRE(read.rules.size() == 2);
  CHECK(read.rules[0].thresholds[0] == DoubleDouble(-0.25));
  CHECK(read.rules[1].rule.name() == "top:2");
  REQUIRE(read.outdated.size() == 1);
  CHECK(read.outdated[0].name() == "conformal:aps:0.1");
  const StoredRules again = stored_rules_from_text(to_text(read), 3, "a file");
  CHECK(again.rules.size() == 2);
  CHECK(again.outdated.empty());
}

TEST_CASE("rules keep the form of inference, which is exact in earlier versions") {
  StoredRules rules = some_rules();
  rules.inference = "bf16";
  std::string text = to_text(rules);
  CHECK(stored_rules_from_text(text, 3, "a file").inference == "bf16");
  const std::string form = "\"inference\":\"bf16\",";
  REQUIRE(text.find(form) != std::string::npos);
  std::string other = text;
  text.erase(text.find(form), form.size());
  CHECK(stored_rules_from_text(text, 3, "a file").inference == "exact");
  other.replace(other.find("bf16"), 4, "int8");
  CHECK_THROWS_WITH(stored_rules_from_text(other, 3, "a file"), Contains("none of exact, fast and bf16"));
}

TEST_CASE("text that is no rules of a model is refused, with its place") {
  CHECK_THROWS_WITH(stored_rules_from_text(to_text(some_rules()), 4, "'model.safetensors'"),
                    Contains("'model.safetensors': ") && Contains("3 classes, expected 4"));
  for (const char* text : {"", "[]", "{}", "{\"rules_version\": 3}", "{\"rules_version\": 2e84}",
                           "{\"rules_version\": 1, \"temperature\": -1, \"calibrated_on\": \"\", \"rules\": []}",
                           "{\"rules_version\": 1, \"temperature\": 1e999, \"calibrated_on\": \"\", \"rules\": []}",
                           "{\"rules_version\": 1, \"temperature\": 1, \"calibrated_on\": \"\", \"rules\": [7]}"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(stored_rules_from_text(text, 3, "a file"), RunError);
  }
}

TEST_CASE("a rule's tree must be one of its classes") {
  const Json good = to_json(calibrated_rule("conformal:tree(nodes=2):0.3"));
  CHECK(rule_from_json(good, 5).tree == std::vector<int64_t>{5, 5, 6, 6, 6, 6, -1});
  for (const Json& tree :
       {Json(), Json::array(), Json({5, 5, 5, 5, 5}), Json({5, 5, 6, 6, 6, 4, -1}), Json({5, 5, 6, 6, 6, 1.5, -1}),
        Json({5, 5, 5, 5, 5, 6, -1, -1}), Json({5, 5, 6, 6, 6, 6, 7})}) {
    Json wrong = good;
    wrong["tree"] = tree;
    CHECK_THROWS_WITH(rule_from_json(wrong, 5), Catch::Contains("'tree'"));
  }
}

TEST_CASE("a rule keeps the calibration images' scores") {
  CalibratedRule rule = calibrated_rule("conformal:lac:0.1:superclass");
  rule.images = 3;
  rule.superclass_of = {0, 0, 1, 1, 1};
  rule.label_scores = {{DoubleDouble::sum(-1, 1e-30), -0.25, -kInfinity}, {4, 0, 2}};
  const Json good = to_json(rule);
  const CalibratedRule read = rule_from_json(Json::parse(good.dump()), 5);
  CHECK((read.label_scores.scores == rule.label_scores.scores));
  CHECK(read.label_scores.labels == rule.label_scores.labels);
  CHECK(read.superclass_of == rule.superclass_of);
  for (const auto& [key, value] : good["label_scores"].items()) {
    for (const Json& other :
         {Json(), Json(1), Json("????"), Json("AAAA"), Json(""), Json("/////////////////////w==")}) {
      Json wrong = good;
      wrong["label_scores"][key] = other;
      CHECK_THROWS_AS(rule_from_json(wrong, 5), RunError);
    }
  }
  Json few = good;
  few["superclass_of"] = {0, 1};
  CHECK_THROWS_WITH(rule_from_json(few, 5), Catch::Contains("superclass_of"));
}

}  // namespace
}  // namespace settrain
