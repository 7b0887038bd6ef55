#include "src/inference/rule_file.h"

#include <ATen/ATen.h>

#include <fstream>
#include <limits>

#include "metrics/sets/calibrate.h"
#include "tests/support/catch2.h"
#include "tests/support/read_file.h"
#include "tests/support/temporary_folder.h"

namespace settrain {
namespace {

using Catch::Contains;

CalibratedRule calibrated(const std::string& name) {
  at::manual_seed(1);
  const at::Tensor scores = at::randn({50, 3}), labels = at::randint(3, {50}, at::kLong);
  return calibrate(parse_set_rule(name), {.classes = 3}, scores, labels, 1);
}

StoredRules some_rules(const std::string& sha256, const std::vector<std::string>& names) {
  StoredRules stored{.temperature = 1.25, .calibrated_on = "50 images of val", .checkpoint_sha256 = sha256};
  for (const std::string& name : names) stored.rules.push_back(calibrated(name));
  return stored;
}

}  // namespace

TEST_CASE("rules come back from a run's folder to the bit, and later ones join them") {
  const test::TemporaryFolder files;
  const RunFolder folder = RunFolder::create(files / "run", false);
  CHECK_FALSE(load_stored_rules(folder, "last", "abc", 3));
  store_rules(folder, "last", some_rules("abc", {"top:2", "conformal:lac:0.1"}));
  store_rules(folder, "last", some_rules("abc", {"conformal:lac:0.1:classwise", "top:2"}));
  const auto stored = load_stored_rules(folder, "last", "abc", 3);
  REQUIRE(stored);
  CHECK(stored->temperature == 1.25);
  REQUIRE(stored->rules.size() == 3);
  CHECK((stored->rules[0].thresholds == calibrated("conformal:lac:0.1:classwise").thresholds));
  CHECK((stored->rules[2].thresholds == calibrated("conformal:lac:0.1").thresholds));
}

TEST_CASE("rules of another temperature, or of other images, do not stay, and are reported") {
  const test::TemporaryFolder files;
  const RunFolder folder = RunFolder::create(files / "run", false);
  CHECK(store_rules(folder, "last", some_rules("abc", {"top:2"})).empty());
  StoredRules warmer = some_rules("abc", {"top:1"});
  warmer.temperature = 2;
  CHECK(store_rules(folder, "last", warmer) == std::vector<std::string>{"top:2"});
  CHECK(load_stored_rules(folder, "last", "abc", 3)->rules.size() == 1);
  warmer.calibrated_on = "25 images of val";
  warmer.rules.front() = calibrated("conformal:lac:0.1");
  CHECK(store_rules(folder, "last", warmer) == std::vector<std::string>{"top:1"});
  warmer.inference = "fast";
  warmer.rules.front() = calibrated("top:2");
  CHECK(store_rules(folder, "last", warmer) == std::vector<std::string>{"conformal:lac:0.1"});
  CHECK(load_stored_rules(folder, "last", "abc", 3)->inference == "fast");
}

TEST_CASE("places stay as rules do, and later ones of the same name replace them") {
  const test::TemporaryFolder files;
  const RunFolder folder = RunFolder::create(files / "run", false);
  const auto with_place = [](const std::string& name, double share) {
    StoredRules stored = some_rules("abc", {"top:2"});
    const double never = -std::numeric_limits<double>::infinity();
    stored.places = {{.name = name,
                      .source = "'" + name + ".csv'",
                      .prior = {share, 1 - share, 0},
                      .offsets = {0.1, 1.0 / 3, never},
                      .rules = {calibrated("conformal:lac:0.1")}}};
    return stored;
  };
  store_rules(folder, "last", with_place("alps", 0.25));
  CHECK(store_rules(folder, "last", with_place("jura", 0.5)).empty());
  store_rules(folder, "last", with_place("alps", 0.125));
  const StoredRules stored = load_stored_rules(folder, "last", "abc", 3).value();
  REQUIRE(stored.places.size() == 2);
  CHECK(stored.places[0].name == "alps");
  CHECK(stored.places[0].prior == std::vector<double>{0.125, 0.875, 0});
  CHECK(stored.places[1].source == "'jura.csv'");
  CHECK(stored.places[1].offsets == with_place("jura", 0.5).places[0].offsets);
  CHECK((stored.places[1].rules.at(0).thresholds == calibrated("conformal:lac:0.1").thresholds));
  StoredRules warmer = some_rules("abc", {"top:2"});
  warmer.temperature = 2;
  CHECK(store_rules(folder, "last", warmer) == std::vector<std::string>{"the place alps", "the place jura"});
}

TEST_CASE("damaged places are refused") {
  StoredRules stored = some_rules("abc", {});
  stored.places = {{.name = "alps", .source = "", .prior = {0.5, 0.5, 0}, .offsets = {0, 0, -1}}};
  const auto read = [&] { return stored_rules_from_text(to_text(stored), 3, "'x'"); };
  CHECK_NOTHROW(read());
  const auto refused = [&](auto&& damage, const char* reason) {
    const StoredRules before = stored;
    damage(stored.places[0]);
    CHECK_THROWS_WITH(read(), Contains(reason));
    stored = before;
  };
  refused([](CalibratedPlace& place) { place.name = "a b"; }, "no name");
  refused([](CalibratedPlace& place) { place.prior = {0.5, 0.4, 0}; }, "do not sum to 1");
  refused([](CalibratedPlace& place) { place.prior = {1.5, -0.5, 0}; }, "shares or offsets");
  refused([](CalibratedPlace& place) { place.prior.pop_back(); }, "'prior' has 2 numbers");
  refused([](CalibratedPlace& place) { place.offsets[0] = std::numeric_limits<double>::infinity(); }, "offsets");
  refused([](CalibratedPlace& place) { place.offsets[0] = -std::numeric_limits<double>::infinity(); }, "offsets");
}

TEST_CASE("rules that must be calibrated again do not stay, and are reported") {
  const test::TemporaryFolder files;
  const RunFolder folder = RunFolder::create(files / "run", false);
  store_rules(folder, "last", some_rules("abc", {"conformal:lac:0.1", "conformal:aps:0.1", "conformal:saps:0.1"}));
  std::string text = test::read_file(folder.rules("last"));
  for (const std::string version : {"\"rules_version\":3", "\"version\":3"}) {
    for (size_t at = 0; (at = text.find(version)) != std::string::npos;) text[at + version.size() - 1] = '1';
  }
  std::ofstream(folder.rules("last")) << text;
  CHECK(load_stored_rules(folder, "last", "abc", 3)->outdated.size() == 2);
  CHECK(store_rules(folder, "last", some_rules("abc", {"conformal:aps:0.1"})) ==
        std::vector<std::string>{"conformal:saps:0.1"});
  CHECK(load_stored_rules(folder, "last", "abc", 3)->rules.size() == 2);
}

TEST_CASE("rules of other weights, and damaged ones, are refused, and replaced by new ones") {
  const test::TemporaryFolder files;
  const RunFolder folder = RunFolder::create(files / "run", false);
  store_rules(folder, "last", some_rules("abc", {"top:2"}));
  CHECK_THROWS_WITH(load_stored_rules(folder, "last", "def", 3),
                    Contains("rules-last.json'") && Contains("other weights"));
  store_rules(folder, "last", some_rules("def", {"top:1"}));
  CHECK(load_stored_rules(folder, "last", "def", 3)->rules.size() == 1);
  std::ofstream(folder.rules("last")) << "{\"rules_version\": 1";
  CHECK_THROWS_WITH(load_stored_rules(folder, "last", "def", 3), Contains("rules-last.json'"));
}

}  // namespace settrain
