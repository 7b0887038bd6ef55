#include "src/inference/stored_rules.h"

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <fstream>

#include "src/core/error.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

CalibratedRule calibrated(const std::string& name) {
  at::manual_seed(1);
  const at::Tensor scores = at::randn({50, 3}), labels = at::randint(3, {50}, at::kLong);
  return calibrate(parse_set_rule(name), {.classes = 3}, scores, labels, 1);
}

StoredRules some_rules(const std::vector<std::string>& names) {
  StoredRules stored{.temperature = 1.25, .calibrated_on = "50 images of val", .rules = {}};
  for (const std::string& name : names) stored.rules.push_back(calibrated(name));
  return stored;
}

}  // namespace

TEST_CASE("rules come back from a run's folder to the bit, and later ones join them", "[fast]") {
  const test::TemporaryFolder files;
  const RunFolder folder = RunFolder::create(files / "run", false);
  CHECK_FALSE(load_stored_rules(folder, "last", "abc", 3));
  store_rules(folder, "last", "abc", some_rules({"top:2", "conformal:lac:0.1"}));
  store_rules(folder, "last", "abc", some_rules({"conformal:lac:0.1:classwise", "top:2"}));
  const auto stored = load_stored_rules(folder, "last", "abc", 3);
  REQUIRE(stored);
  CHECK(stored->temperature == 1.25);
  REQUIRE(stored->rules.size() == 3);
  CHECK(stored->rules[0].thresholds == calibrated("conformal:lac:0.1:classwise").thresholds);
  CHECK(stored->rules[2].thresholds == calibrated("conformal:lac:0.1").thresholds);
  CHECK(to_text(*stored) == to_text(stored_rules_from_text(to_text(*stored), 3, "a file")));
}

TEST_CASE("rules of another temperature do not stay", "[fast]") {
  const test::TemporaryFolder files;
  const RunFolder folder = RunFolder::create(files / "run", false);
  store_rules(folder, "last", "abc", some_rules({"top:2"}));
  StoredRules warmer = some_rules({"top:1"});
  warmer.temperature = 2;
  store_rules(folder, "last", "abc", warmer);
  CHECK(load_stored_rules(folder, "last", "abc", 3)->rules.size() == 1);
}

TEST_CASE("rules of other weights, and damaged ones, are refused, and replaced by new ones", "[fast]") {
  const test::TemporaryFolder files;
  const RunFolder folder = RunFolder::create(files / "run", false);
  store_rules(folder, "last", "abc", some_rules({"top:2"}));
  CHECK_THROWS_WITH(load_stored_rules(folder, "last", "def", 3),
                    Contains("rules-last.json'") && Contains("other weights"));
  store_rules(folder, "last", "def", some_rules({"top:1"}));
  CHECK(load_stored_rules(folder, "last", "def", 3)->rules.size() == 1);
  std::ofstream(folder.rules("last")) << "{\"rules_version\": 1";
  CHECK_THROWS_WITH(load_stored_rules(folder, "last", "def", 3), Contains("rules-last.json'"));
  for (const char* text : {"[]", "{}", "{\"rules_version\": 2}",
                           "{\"rules_version\": 1, \"temperature\": -1, \"calibrated_on\": \"\", \"rules\": []}",
                           "{\"rules_version\": 1, \"temperature\": 1, \"calibrated_on\": \"\", \"rules\": [7]}"}) {
    CHECK_THROWS_AS(stored_rules_from_text(text, 3, "a file"), RunError);
  }
}

}  // namespace settrain
