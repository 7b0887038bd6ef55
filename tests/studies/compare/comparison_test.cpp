#include "src/studies/compare/comparison.h"

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/core/error.h"
#include "tests/studies/compare/some_runs.h"
#include "tests/support/catch2.h"

using namespace settrain;
using test::Checkpoints;
using test::some_run;

namespace {

using Strings = std::vector<std::string>;

const test::Given kSharpRuns{"loss.epsilon", 0.1}, kSoftRuns{"loss.epsilon", 1.0};

Checkpoints top1(double value) {
  return {{"best-val-top1", {{"val/top1", 0.9}, {"test/top1", value}, {"test Bayes/top1", 1.0}}}};
}

std::vector<Setting> two_settings() {
  return group_runs({some_run("a1", 1, {kSharpRuns}, top1(0.5)), some_run("a2", 2, {kSharpRuns}, top1(0.6)),
                     some_run("a3", 3, {kSharpRuns}, top1(0.7)), some_run("b1", 1, {kSoftRuns}, top1(0.6)),
                     some_run("b3", 3, {kSoftRuns}, top1(0.75)), some_run("b4", 4, {kSoftRuns}, top1(0.1))});
}

Strings folders(const Setting& setting) {
  Strings names;
  for (const ComparedRun& run : setting.runs) names.push_back(run.folder.string());
  return names;
}

}  // namespace

TEST_CASE("Runs that differ in seed and free keys alone are one setting, by their seeds") {
  const test::Given one_thread{"run.threads", int64_t{1}, true}, two_threads{"run.threads", int64_t{2}, true};
  const auto settings =
      group_runs({some_run("b", 2, {kSharpRuns, one_thread}), some_run("c", 1, {kSoftRuns, one_thread}),
                  some_run("a", 1, {kSharpRuns, two_threads})});
  REQUIRE(settings.size() == 2);
  CHECK(settings[0].name == "A");
  CHECK(folders(settings[0]) == Strings{"a", "b"});
  CHECK(settings[1].name == "B");
  CHECK(folders(settings[1]) == Strings{"c"});
}

TEST_CASE("A seed that a setting has already is a repetition") {
  const auto settings =
      group_runs({some_run("a", 1, {kSharpRuns}), some_run("a", 1, {kSharpRuns}), some_run("b", 2, {kSharpRuns})});
  REQUIRE(settings.size() == 2);
  CHECK(folders(settings[0]) == Strings{"a", "b"});
  CHECK(folders(settings[1]) == Strings{"a"});
  CHECK(differing_keys(settings).empty());
}

TEST_CASE("The keys that differ, with the value of every setting") {
  const test::Given noised{"loss.name", std::string("noised_topk")}, plain{"loss.name", std::string("cross_entropy")};
  const test::Given epochs{"train.epochs", int64_t{2}}, more{"train.epochs", int64_t{9}};
  const auto settings = group_runs({some_run("a", 1, {noised, kSharpRuns, epochs}), some_run("b", 1, {plain, epochs}),
                                    some_run("c", 7, {noised, kSharpRuns, more})});
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

TEST_CASE("Means over all seeds, differences over those in common") {
  const MetricComparison comparison = compare_metric(two_settings(), "test/top1");
  REQUIRE(comparison.settings.size() == 2);
  CHECK(comparison.settings[0].interval.mean == Approx(0.6));
  CHECK(comparison.settings[0].interval.half_width == Approx(4.302652729749 * 0.1 / std::sqrt(3)));
  CHECK(comparison.settings[1].interval.mean == Approx(1.45 / 3));
  REQUIRE(comparison.differences.size() == 1);
  CHECK(comparison.differences[0].seeds == std::vector<int64_t>{1, 3});
  CHECK(comparison.differences[0].interval.mean == Approx(0.075));
  CHECK(comparison.differences[0].interval.half_width == Approx(12.70620473617 * 0.025));
  CHECK(comparison.differences[0].interval.deserves_warning());
}

TEST_CASE("Without a seed in common there is no difference") {
  const auto settings =
      group_runs({some_run("a", 1, {kSharpRuns}, top1(0.5)), some_run("b", 2, {kSoftRuns}, top1(0.6))});
  const MetricComparison comparison = compare_metric(settings, "test/top1");
  CHECK(comparison.differences[0].seeds.empty());
  CHECK(format_comparison(settings, {comparison}).find("B - A  no seed in common") != std::string::npos);
}

TEST_CASE("Runs that were tested on other images are reported by their seed, wherever they are compared") {
  const auto tested_on = [](const std::string& digest) {
    return test::Checkpoints{{"last", {{"test/top1", 0.5}}, {{"test", digest}}}};
  };
  const auto settings =
      group_runs({some_run("a1", 1, {kSharpRuns}, tested_on("x")), some_run("a2", 2, {kSharpRuns}, tested_on("y")),
                  some_run("b1", 1, {kSoftRuns}, tested_on("x")), some_run("b2", 2, {kSoftRuns}, tested_on("z")),
                  some_run("b3", 3, {kSoftRuns}, tested_on(""))});
  const MetricComparison comparison = compare_metric(settings, "test/top1");
  CHECK(comparison.differences[0].other_images == std::vector<int64_t>{2});
  CHECK(format_comparison(settings, {comparison}).find("not on the same images: seed 2\n") != std::string::npos);
  CHECK(comparison_json(settings, {comparison})["metrics"][0]["differences"][0]["other_images"][0] == 2);
}

TEST_CASE("A value comes from the checkpoint that was chosen by its metric, else from the first") {
  const ComparedRun run = some_run(
      "a", 1, {}, {{"best-val-top1", {{"test/top1", 0.1}}}, {"best-val-avg5", {}}, {"best-val-macro_avg5", {}}});
  CHECK(checkpoint_for(run, "test/avg5").name == "best-val-avg5");
  CHECK(checkpoint_for(run, "test/avg5_size").name == "best-val-avg5");
  CHECK(checkpoint_for(run, "test/avg5_lambda").name == "best-val-avg5");
  CHECK(checkpoint_for(run, "test/macro_avg5").name == "best-val-macro_avg5");
  CHECK(checkpoint_for(run, "test/top5").name == "best-val-top1");
}

TEST_CASE("A checkpoint that was chosen on test images is read only where there is no other") {
  const CheckpointValues last{"last", {}}, on_test{"best-test-top1", {}}, on_val{"best-val-top5", {}};
  const auto chosen = [](const Checkpoints& checkpoints) {
    return checkpoint_for(some_run("a", 1, {}, checkpoints), "test/top1").name;
  };
  CHECK(chosen({on_test, last}) == "last");
  CHECK(chosen({last, on_test}) == "last");
  CHECK(chosen({last, on_test, on_val}) == "best-val-top5");
  CHECK(chosen({on_test}) == "best-test-top1");
}

TEST_CASE("A size of a set rule comes from the checkpoint chosen by it, else from that chosen by its coverage") {
  const std::string coverage = "best-val-coverage@conformal-lac-0.1", size = "best-val-size@conformal-lac-0.1";
  const ComparedRun by_coverage = some_run("a", 1, {}, {{"last", {}}, {coverage, {}}});
  CHECK(checkpoint_for(by_coverage, "test/coverage@conformal:lac:0.1").name == coverage);
  CHECK(checkpoint_for(by_coverage, "test/size@conformal:lac:0.1").name == coverage);
  const ComparedRun by_both = some_run("a", 1, {}, {{coverage, {}}, {size, {}}});
  CHECK(checkpoint_for(by_both, "test/size@conformal:lac:0.1").name == size);
}

TEST_CASE("An average-K accuracy comes with the size of its sets, of the same checkpoint") {
  const Checkpoints both{{"best-val-avg2", {{"test/avg2", 0.5}, {"test/macro_avg2", 0.3}, {"test/avg2_size", 2.5}}},
                         {"best-val-macro_avg2", {{"test/macro_avg2", 0.4}, {"test/avg2_size", 1.5}}}};
  const auto settings = group_runs({some_run("a", 1, {}, both, {"val/avg2"})});
  const MetricComparison macro = compare_metric(settings, "test/macro_avg2");
  CHECK(macro.settings[0].sizes == std::vector<double>{1.5});
  CHECK(format_comparison(settings, {macro}).find("A  40.00 (1 seed), size 1.5000\n") != std::string::npos);
}

TEST_CASE("The metrics that are compared") {
  const auto settings = two_settings();
  CHECK(choose_metrics(settings, {}) == Strings{"test/top1"});
  CHECK(choose_metrics(settings, {"val/top1"}) == Strings{"val/top1"});
  CHECK(choose_metrics(settings, {"all"}) == Strings{"test/top1"});
  CHECK_THROWS_WITH(choose_metrics(settings, {"top1"}), Catch::Contains("say of which split, such as test/top1"));
  CHECK_THROWS_WITH(choose_metrics(settings, {"test/topp1"}), Catch::Contains("did you mean 'test/top1'?"));
  const Checkpoints details{
      {"last",
       {{"val/top1", 1}, {"test/few_top1", 1}, {"test/bin0_9_top1", 1}, {"test/top5", 1}, {"test/avg5_size", 5}}}};
  CHECK(choose_metrics(group_runs({some_run("a", 1, {}, details, {})}), {}) == Strings{"test/top5"});
  const auto strangers = group_runs(
      {some_run("a", 1, {}, {{"last", {{"test/top5", 1}}}}), some_run("b", 2, {}, {{"last", {{"test/top3", 1}}}})});
  CHECK_THROWS_AS(choose_metrics(strangers, {}), RunError);
}

TEST_CASE("A comparison as text") {
  const auto settings = two_settings();
  const std::string text = format_comparison(settings, {compare_metric(settings, "test/top1")});
  CHECK(
      text ==
      "setting  seed  run\n"
      "A        1     a1\n"
      "         2     a2\n"
      "         3     a3\n"
      "B        1     b1\n"
      "         3     b3\n"
      "         4     b4\n"
      "\n"
      "key           A    B\n"
      "loss.epsilon  0.1  1.0\n"
      "\n"
      "test/top1, of best-val-top1\n"
      "  A      60.00 ± 24.84 (3 seeds)\n"
      "  B      48.33 ± 84.55 (3 seeds)\n"
      "  B - A  +7.50 ± 31.77 (2 seeds) !\n"
      "\n"
      "Accuracies in percent. ±: the 95 % interval of the mean over seeds (Student's t); of differences, over pairs of "
      "one seed.\n"
      "!: two seeds, whose interval is 12.7 standard errors to either side; train more of them.\n");
}

TEST_CASE("Where settings' values are of other checkpoints, each is named") {
  const auto settings =
      group_runs({some_run("a", 1, {kSharpRuns}, top1(0.5)),
                  some_run("b", 1, {kSoftRuns}, {{"last", {{"test/top1", 0.5}, {"val/top1", 0.5}}}})});
  const std::string text = format_comparison(settings, {compare_metric(settings, "test/top1")});
  CHECK(text.find("\ntest/top1, of best-val-top1 in A; of last in B\n") != std::string::npos);
}
