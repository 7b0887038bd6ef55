#include "metrics/sets/rules/stored_rules.h"

#include <limits>

#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using Catch::Contains;

// As calibration could leave them, for three classes.
StoredRules some_rules() {
  CalibratedRule rare{.rule = parse_set_rule("conformal:pas:0.1:rc3p"), .classes = 3};
  rare.thresholds = {-0.1, 1.0 / 3, std::numeric_limits<double>::infinity()};
  rare.most_ranks = {1, 3, 2};
  rare.class_factor = {1.5, std::numeric_limits<double>::infinity(), 0};
  rare.seed = 0xFFFFFFFFFFFFFFFF;
  rare.images = 20;
  rare.guarantee = "no guarantee: a test";
  rare.notes = {"2 classes have too few images"};
  const CalibratedRule most_likely{.rule = parse_set_rule("top:2"), .classes = 3};
  return {.temperature = 0.7, .calibrated_on = "20 images", .checkpoint_sha256 = "abc", .rules = {rare, most_likely}};
}

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

}  // namespace
}  // namespace settrain
