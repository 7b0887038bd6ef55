#include <ATen/ATen.h>

#include <cmath>

#include "metrics/entries.h"
#include "src/core/error.h"
#include "src/eval/evaluator.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using test::value_of;

EvaluationResult bayes(const at::Tensor& probabilities, const config::Integers& top_k, const config::Reals& average_k) {
  return {bayes_accuracy(probabilities, top_k, average_k), {}};
}

TEST_CASE("Bayes-optimal accuracies of two samples, by hand") {
  const at::Tensor p = at::tensor({.9, .1, .0, .4, .35, .25}, at::kDouble).view({2, 3});
  const EvaluationResult best = bayes(p, {1, 2, 3, 9}, {0.25, 1, 1.5, 1.75, 3, 9});
  CHECK(value_of(best, "top1") == Approx(.65));
  CHECK(value_of(best, "top2") == Approx(.875));
  CHECK(value_of(best, "top3") == Approx(1));
  CHECK(value_of(best, "top9") == Approx(1));
  // Largest first: .9 .4 .35 .25 .1 0
  CHECK(value_of(best, "avg0.25") == Approx(.45 / 2));
  CHECK(value_of(best, "avg1") == Approx(1.3 / 2));
  CHECK(value_of(best, "avg1.5") == Approx(1.65 / 2));
  CHECK(value_of(best, "avg1.75") == Approx((1.65 + .125) / 2));
  CHECK(value_of(best, "avg3") == Approx(1));
  CHECK(value_of(best, "avg9") == Approx(1));
  CHECK(value_of(best, "avg1.75_size") == 1.75);
  CHECK(value_of(best, "avg9_size") == 3);
}

TEST_CASE("sets of K on average are never worse than sets of K") {
  for (uint64_t seed = 0; seed < 10; ++seed) {
    const at::Tensor p = at::softmax(test::random_split(seed, 40, 8, at::kFloat).scores.mul(2), 1);
    const EvaluationResult best = bayes(p, {1, 2, 5}, {1, 2, 5});
    CHECK(value_of(best, "avg1") >= value_of(best, "top1") - 1e-9);
    CHECK(value_of(best, "avg2") >= value_of(best, "top2") - 1e-9);
    CHECK(value_of(best, "avg5") >= value_of(best, "top5") - 1e-9);
  }
}

TEST_CASE("a classifier that knows the probabilities comes near the best accuracy") {
  at::manual_seed(11);
  const at::Tensor p = at::softmax(at::randn({20000, 6}, at::kDouble).mul(2), 1);
  const SplitScores split{p, p.multinomial(1).squeeze(1)};
  std::vector<std::unique_ptr<Metric>> metrics;
  metrics.push_back(make_topk_accuracy({{1, 2}}));
  metrics.push_back(make_average_k({{1, 2.5}, AverageKScore::kRaw, Ties::kKeepAll, "val"}));
  MetricContext context;
  context.train_counts.assign(6, 1);
  const EvaluationResult got = Evaluator(std::move(metrics), context).evaluate(split);
  const EvaluationResult best = bayes(p, {1, 2}, {1, 2.5});
  // Labels are drawn: four standard deviations of a mean of 20,000 are below 0.0142.
  for (const char* name : {"top1", "top2", "avg1", "avg2.5"}) {
    CHECK(value_of(got, name) == Approx(value_of(best, name)).margin(0.0142));
  }
}

TEST_CASE("probabilities that are not finite are refused") {
  at::Tensor p = at::full({2, 2}, 0.5);
  p[1][1] = std::nan("");
  CHECK_THROWS_AS(bayes_accuracy(p, {1}, {1}), NumericalError);
}

}  // namespace
}  // namespace settrain
