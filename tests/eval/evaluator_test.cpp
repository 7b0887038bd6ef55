#include "src/eval/evaluator.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "metrics/entries.h"
#include "src/core/error.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using test::value_of;

MetricContext context_of(std::vector<int64_t> train_counts) {
  MetricContext context;
  context.train_counts = std::move(train_counts);
  return context;
}

Evaluator make_evaluator(std::vector<int64_t> train_counts) {
  std::vector<std::unique_ptr<Metric>> metrics;
  metrics.push_back(make_topk_accuracy({{1, 2}}));
  metrics.push_back(make_average_k({{2, 2.5}, AverageKScore::kSoftmax, Ties::kKeepAll, "val"}));
  return {std::move(metrics), context_of(std::move(train_counts))};
}

bool same(double a, double b) {
  return a == b || (std::isnan(a) && std::isnan(b));
}

TEST_CASE("the evaluator returns what it announces, every metric in turn") {
  const Evaluator evaluator = make_evaluator({1, 30, 300, 1});
  const EvaluationResult result = evaluator.evaluate(test::random_split(2, 30, 4, at::kFloat));
  CHECK(test::facts_of(result.values) == test::facts_of(evaluator.facts()));
  CHECK(result.values.front().name == "top1");
  REQUIRE(result.set_sizes.size() == 8);  // of all samples and three shot groups, for every K
  CHECK(result.set_sizes[0].metric == "avg2");
}

TEST_CASE("results do not depend on the batches or their order") {
  const Evaluator evaluator = make_evaluator({1, 30, 300, 1, 50});
  const SplitScores split = test::random_split(3, 64, 5, at::kFloat, 6);
  const EvaluationResult expected = evaluator.evaluate(split);
  for (const int64_t batch : {1, 7, 64}) {
    ScoreCollector collector(64, 5, at::kCPU);
    const at::Tensor order = at::randperm(64, at::kLong);
    for (int64_t first = 0; first < 64; first += batch) {
      const at::Tensor rows = order.slice(0, first, std::min<int64_t>(first + batch, 64));
      collector.add(split.scores.index_select(0, rows), split.labels.index_select(0, rows));
    }
    const EvaluationResult got = evaluator.evaluate(collector.finish());
    for (size_t i = 0; i < expected.values.size(); ++i) {
      CAPTURE(batch, expected.values[i].name);
      CHECK(same(got.values[i].value, expected.values[i].value));
    }
    CHECK(got.set_sizes[0].counts == expected.set_sizes[0].counts);
  }
}

TEST_CASE("another split's scores set the thresholds") {
  const Evaluator evaluator = make_evaluator({1, 1, 1, 1});
  const SplitScores val = test::random_split(4, 50, 4, at::kFloat), test = test::random_split(5, 20, 4, at::kFloat);
  const double lambda = value_of(evaluator.evaluate(val), "avg2_lambda");
  CHECK(value_of(evaluator.evaluate(test, &val.scores), "avg2_lambda") == lambda);
  CHECK(value_of(evaluator.evaluate(test), "avg2_lambda") != lambda);
  CHECK(value_of(evaluator.evaluate(test), "avg2_size") == 2);
}

TEST_CASE("scores that are not finite are refused, thresholds' scores too") {
  const Evaluator evaluator = make_evaluator({1, 1, 1, 1});
  const SplitScores good = test::random_split(6, 9, 4, at::kFloat);
  SplitScores bad{good.scores.clone(), good.labels};
  bad.scores[4][1] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(evaluator.evaluate(bad), NumericalError);
  CHECK_THROWS_AS(evaluator.evaluate(good, &bad.scores), NumericalError);
  CHECK_THROWS_WITH(evaluator.evaluate(good, &bad.scores),
                    Catch::Contains("threshold scores") && Catch::Contains("sample 4"));
}

TEST_CASE("calibration of other classes, or with scores that are not finite, is refused") {
  const Evaluator evaluator = make_evaluator({1, 1, 1, 1});
  const SplitScores good = test::random_split(6, 9, 4, at::kFloat),
                    wide = test::random_split(6, 9, 5, at::kFloat, 0, 4);
  SplitScores bad{good.scores.clone(), good.labels};
  bad.scores[4][1] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_AS(evaluator.evaluate(good, nullptr, &bad), NumericalError);
  CHECK_THROWS_AS(evaluator.evaluate(good, nullptr, &wide), ShapeError);
}

TEST_CASE("a number of classes that differs is refused") {
  const SplitScores split = test::random_split(7, 9, 4, at::kFloat);
  CHECK_THROWS_AS(make_evaluator({1, 1, 1}).evaluate(split), ShapeError);
  const at::Tensor narrow = split.scores.slice(1, 0, 3);
  CHECK_THROWS_AS(make_evaluator({1, 1, 1, 1}).evaluate(split, &narrow), ShapeError);
}

TEST_CASE("an evaluator is built from a registry and a configuration") {
  MetricRegistry registry("metric");
  register_builtin_metrics(registry);
  std::vector<config::Entry> entries;
  for (const MetricEntry& metric : registry.entries()) {
    for (const config::Key& key : metric.keys)
      entries.push_back({"eval." + key.name, key, key.default_value, {"default"}});
  }
  const Evaluator evaluator(registry, config::Config(std::move(entries)), context_of({1, 1, 1, 1, 1, 1}));
  const EvaluationResult result = evaluator.evaluate(test::random_split(8, 40, 6, at::kFloat));
  CHECK(value_of(result, "top5") >= value_of(result, "top1"));
  CHECK(value_of(result, "avg5_size") == 5);
}

}  // namespace
}  // namespace settrain
