#include "metrics/sets/rule_metrics.h"

#include <ATen/ATen.h>

#include <cmath>
#include <set>

#include "metrics/sets/calibrate.h"
#include "metrics/sets/set_quality.h"
#include "src/core/error.h"
#include "src/core/metric_name.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

using namespace settrain;
using Catch::Contains;
using test::value_of;

namespace {

std::unique_ptr<Metric> metric_of(const config::Texts& rules) {
  MetricRegistry registry("metric");
  register_set_metrics(registry);
  const MetricEntry& entry = registry.at("rules");
  return entry.make(config::Config({{"eval.rules", entry.keys.front(), rules, {"test.yaml:3:7"}}}));
}

MetricContext context_of(std::vector<int64_t> train_counts) {
  MetricContext context;
  context.train_counts = std::move(train_counts);
  context.seed = 5;
  return context;
}

const std::vector<int64_t> kCounts{10, 20, 200, 1000};

SplitScores rows_of(const SplitScores& split, const at::Tensor& rows) {
  return {split.scores.index_select(0, rows), split.labels.index_select(0, rows)};
}

SetQuality judged(const std::string& rule, const SplitScores& calibration, const SplitScores& split,
                  const MetricContext& context) {
  const SetRule parsed = parse_set_rule(rule);
  const ClassFacts facts{.classes = split.scores.size(1), .train_counts = context.train_counts};
  const CalibratedRule calibrated =
      calibrate(parsed, facts, calibration.scores * context.score_scale, calibration.labels, context.seed);
  return set_quality(sets_of(calibrated, split.scores * context.score_scale), split.labels, 1 - parsed.level,
                     context.train_counts);
}

}  // namespace

TEST_CASE("every rule has its metrics, with a gap where it has an error") {
  const auto metric = metric_of({"conformal:pas:0.1", "top:2"});
  CHECK(test::names_of(metric->facts()) ==
        std::vector<std::string>{"coverage@conformal:pas:0.1", "size@conformal:pas:0.1",
                                 "macro_coverage@conformal:pas:0.1", "below_half@conformal:pas:0.1",
                                 "undercoverage_gap@conformal:pas:0.1", "coverage@top:2", "size@top:2",
                                 "macro_coverage@top:2", "below_half@top:2"});
  const EvaluationResult result = metric->compute(test::random_split(1, 100, 4, at::kFloat), context_of(kCounts));
  CHECK(test::facts_of(result.values) == test::facts_of(metric->facts()));
  REQUIRE(result.set_sizes.size() == 2);
  CHECK(result.set_sizes[1].metric == "coverage@top:2");
  CHECK(result.set_sizes[1].counts == std::vector<int64_t>{0, 0, 50, 0, 0});
}

TEST_CASE("without rules there is nothing") {
  const auto metric = metric_of({});
  CHECK(metric->facts().empty());
  CHECK(metric->compute(test::random_split(1, 10, 4, at::kFloat), context_of(kCounts)).values.empty());
}

TEST_CASE("given images calibrate, and all of the split is judged") {
  const SplitScores calibration = test::random_split(2, 300, 4, at::kFloat);
  const SplitScores split = test::random_split(3, 9000, 4, at::kFloat);  // more than are judged at a time
  MetricContext context = context_of(kCounts);
  context.calibration = &calibration;
  context.score_scale = 2;
  const std::string rule = "conformal:lac:0.2";
  const EvaluationResult result = metric_of({rule})->compute(split, context);
  const SetQuality expected = judged(rule, calibration, split, context);
  CHECK(expected.images == 9000);
  CHECK(value_of(result, "coverage@" + rule) == expected.coverage);
  CHECK(value_of(result, "size@" + rule) == expected.mean_size);
  CHECK(value_of(result, "macro_coverage@" + rule) == expected.macro_coverage);
  CHECK(value_of(result, "below_half@" + rule) == expected.below_half);
  CHECK(value_of(result, "undercoverage_gap@" + rule) == expected.undercoverage_gap);
}

TEST_CASE("a split that calibrates itself is judged on the images that did not") {
  const SplitScores split = test::random_split(4, 101, 4, at::kFloat);
  const auto metric = metric_of({"top:1"});
  MetricContext context = context_of(kCounts);
  const auto prepared = metric->prepare(split, context);
  // A single image has values only where it is judged.
  std::set<int64_t> judged_images;
  for (int64_t i = 0; i < 101; ++i) {
    const EvaluationResult one = prepared(at::tensor({i}, at::kLong));
    if (!std::isnan(value_of(one, "coverage@top:1"))) judged_images.insert(i);
  }
  CHECK(judged_images.size() == 51);
  std::vector<int64_t> in, out;
  for (int64_t i = 0; i < 101; ++i) (judged_images.contains(i) ? in : out).push_back(i);
  const std::string rule = "conformal:lac:0.3";
  const EvaluationResult result = metric_of({rule})->compute(split, context);
  const SetQuality expected = judged(rule, rows_of(split, at::tensor(out)), rows_of(split, at::tensor(in)), context);
  CHECK(value_of(result, "coverage@" + rule) == expected.coverage);
  CHECK(value_of(result, "size@" + rule) == expected.mean_size);
  context.seed = 6;
  const auto again = metric->prepare(split, context);
  int64_t moved = 0;
  for (const int64_t i : in) moved += std::isnan(value_of(again(at::tensor({i}, at::kLong)), "coverage@top:1"));
  CHECK(moved > 10);
  CHECK_THROWS_AS(metric->prepare(test::random_split(4, 1, 4, at::kFloat), context), ShapeError);
}

TEST_CASE("drawn images are judged by the rule that the split was judged by") {
  const SplitScores calibration = test::random_split(5, 200, 4, at::kFloat),
                    split = test::random_split(6, 80, 4, at::kFloat);
  MetricContext context = context_of(kCounts);
  context.calibration = &calibration;
  const std::string rule = "conformal:aps:0.2";
  const auto metric = metric_of({rule});
  const at::Tensor drawn = at::tensor({7, 7, 3, 79, 0, 7}, at::kLong);
  const EvaluationResult result = metric->prepare(split, context)(drawn);
  CHECK(value_of(result, "size@" + rule) == judged(rule, calibration, rows_of(split, drawn), context).mean_size);
  CHECK(value_of(result, "coverage@" + rule) == judged(rule, calibration, rows_of(split, drawn), context).coverage);
}

TEST_CASE("scores of sigmoids are judged as such") {
  const SplitScores calibration = test::random_split(7, 200, 4, at::kFloat),
                    split = test::random_split(8, 50, 4, at::kFloat);
  MetricContext context = context_of(kCounts);
  context.calibration = &calibration;
  const auto metric = metric_of({"conformal:lac:0.3"});
  const double softmax = value_of(metric->compute(split, context), "size@conformal:lac:0.3");
  context.sigmoid = true;
  CHECK(value_of(metric->compute(split, context), "size@conformal:lac:0.3") != softmax);
  CHECK_THROWS_AS(metric_of({"conformal:aps:0.3"})->compute(split, context), ConfigError);
}

TEST_CASE("texts that are no rules are refused with their place, all of them at once") {
  CHECK_THROWS_WITH(
      metric_of({"top:2", "conformal:lac:2", "nearest:3"}),
      Contains("test.yaml:3:7") && Contains("eval.rules") && Contains("conformal:lac:2") && Contains("nearest:3"));
  CHECK_THROWS_WITH(metric_of({"conformal:lac:0.1", "conformal:lac:0.10"}), Contains("conformal:lac:0.1 twice"));
}

TEST_CASE("the metrics of rules say what they are, and their names in files mean the same") {
  for (const MetricValue& value : metric_of({"conformal:lac:0.1", "top:2"})
                                      ->compute(test::random_split(1, 100, 4, at::kFloat), context_of(kCounts))
                                      .values) {
    CAPTURE(value.name);
    const bool is_coverage = value.name.find("coverage@") != std::string::npos;
    CHECK((value.better == Better::kHigher) == is_coverage);
    CHECK((value.unit == MetricUnit::kClasses) == value.name.starts_with("size@"));
    CHECK((value.over == MeanOver::kSamples) ==
          (value.name.starts_with("size@") || value.name.starts_with("coverage@")));
    CHECK(is_size(value.name) == (value.unit == MetricUnit::kClasses));
    CHECK("val/" + value.size == (is_coverage ? size_metric("val/" + value.name) : "val/"));
    const MetricValue as_half{value.name, 0.5, value.unit, value.over, value.better};
    for (const double other : {0.4, 0.5, 0.6})
      CHECK(is_better_by_name("val/" + value.name, 0.5, other) == is_better(as_half, other));
    CHECK_FALSE(is_better_by_name("val/" + value.name, NAN, 0.5));
    CHECK_FALSE(is_better({value.name, NAN, value.unit, value.over, value.better}, 0.5));
  }
}
