#include "src/studies/compare/settings.h"

#include "tests/studies/compare/some_runs.h"
#include "tests/support/catch2.h"

using namespace settrain;
using test::Given;
using test::some_run;

namespace {

using Strings = std::vector<std::string>;

Strings folders(const Setting& setting) {
  Strings names;
  for (const ComparedRun& run : setting.runs) names.push_back(run.folder.string());
  return names;
}

const Given kSharp{"loss.epsilon", 0.1}, kSoft{"loss.epsilon", 1.0};

}  // namespace

TEST_CASE("Runs that differ in seed and free keys alone are one setting, by their seeds") {
  const Given one_thread{"run.threads", int64_t{1}, true}, two_threads{"run.threads", int64_t{2}, true};
  const auto settings = group_runs({some_run("b", 2, {kSharp, one_thread}), some_run("c", 1, {kSoft, one_thread}),
                                    some_run("a", 1, {kSharp, two_threads})});
  REQUIRE(settings.size() == 2);
  CHECK(settings[0].name == "A");
  CHECK(folders(settings[0]) == Strings{"a", "b"});
  CHECK(settings[1].name == "B");
  CHECK(folders(settings[1]) == Strings{"c"});
}

TEST_CASE("A seed that a setting has already is a repetition") {
  const auto settings =
      group_runs({some_run("a", 1, {kSharp}), some_run("a", 1, {kSharp}), some_run("b", 2, {kSharp})});
  REQUIRE(settings.size() == 2);
  CHECK(folders(settings[0]) == Strings{"a", "b"});
  CHECK(folders(settings[1]) == Strings{"a"});
  CHECK(differing_keys(settings).empty());
}

TEST_CASE("The keys that differ, with the value of every setting") {
  const Given noised{"loss.name", std::string("noised_topk")}, plain{"loss.name", std::string("cross_entropy")};
  const Given epochs{"train.epochs", int64_t{2}}, more{"train.epochs", int64_t{9}};
  const auto settings = group_runs({some_run("a", 1, {noised, kSharp, epochs}), some_run("b", 1, {plain, epochs}),
                                    some_run("c", 7, {noised, kSharp, more})});
  const auto keys = differing_keys(settings);
  REQUIRE(keys.size() == 3);
  CHECK(keys[0].path == "loss.name");
  CHECK(keys[0].values == Strings{"noised_topk", "cross_entropy", "noised_topk"});
  CHECK(keys[1].path == "loss.epsilon");
  CHECK(keys[1].values == Strings{"0.1", "", "0.1"});
  CHECK(keys[2].path == "train.epochs");
  CHECK(keys[2].values == Strings{"2", "2", "9"});
}

TEST_CASE("Settings have letters, then two") {
  std::vector<ComparedRun> runs;
  for (int64_t i = 0; i < 28; ++i) runs.push_back(some_run("run", 1, {{"train.epochs", i}}));
  const auto settings = group_runs(std::move(runs));
  CHECK(settings[25].name == "Z");
  CHECK(settings[26].name == "AA");
  CHECK(settings[27].name == "AB");
}
