#include <ATen/ATen.h>

#include <cmath>

#include "metrics/class_hits.h"
#include "metrics/entries.h"
#include "tests/metrics/random_split.h"
#include "tests/metrics/slow_metrics.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using test::value_of;

TEST_CASE("top-K accuracy of three samples, by hand") {
  SplitScores split;
  split.scores = at::tensor({5., 4., 3., 2., 1., 3., 9., 2., 7.}, at::kDouble).view({3, 3});
  split.labels = at::tensor({0, 0, 1}, at::kLong);  // ranks 0, 1, 2
  MetricContext context;
  context.train_counts = {200, 10, 10};
  const EvaluationResult result = make_topk_accuracy({{1, 2, 3}})->compute(split, context);
  CHECK(value_of(result, "top1") == 1.0 / 3);
  CHECK(value_of(result, "top2") == 2.0 / 3);
  CHECK(value_of(result, "top3") == 1);
  CHECK(value_of(result, "macro_top1") == 0.25);
  CHECK(value_of(result, "macro_top2") == 0.5);
  CHECK(value_of(result, "many_top2") == 1);
  CHECK(value_of(result, "few_top2") == 0);
  CHECK(std::isnan(value_of(result, "medium_top2")));
  CHECK(result.set_sizes.empty());
}

TEST_CASE("top-K accuracy of the classes of a bin, by hand") {
  SplitScores split;
  split.scores = at::tensor({5., 4., 3., 2., 1., 3., 9., 2., 7.}, at::kDouble).view({3, 3});
  split.labels = at::tensor({0, 0, 1}, at::kLong);  // ranks 0, 1, 2
  MetricContext context;
  context.train_counts = {10, 49, 9};
  const EvaluationResult result =
      make_topk_accuracy({{1, 3}}, CountBinOptions{{10, 49, 50}}.bins())->compute(split, context);
  CHECK(std::isnan(value_of(result, "bin0_9_top1")));  // class 2 has no sample
  CHECK(value_of(result, "bin10_48_top1") == 0.5);
  CHECK(value_of(result, "bin10_48_top3") == 1);
  CHECK(value_of(result, "bin49_49_top1") == 0);
  CHECK(value_of(result, "bin49_49_top3") == 1);
  CHECK(std::isnan(value_of(result, "bin50_top3")));
}

TEST_CASE("of equal scores the first K classes are the top K") {
  SplitScores split{at::full({8, 8}, 0.125), at::arange(8, at::kLong)};
  MetricContext context;
  context.train_counts.assign(8, 50);
  const EvaluationResult result = make_topk_accuracy({{1, 3, 8, 20}})->compute(split, context);
  CHECK(value_of(result, "top1") == 1.0 / 8);
  CHECK(value_of(result, "top3") == 3.0 / 8);
  CHECK(value_of(result, "top8") == 1);
  CHECK(value_of(result, "top20") == 1);
}

TEST_CASE("one sample and one class") {
  SplitScores split{at::zeros({1, 1}), at::zeros({1}, at::kLong)};
  MetricContext context;
  context.train_counts = {1};
  CHECK(value_of(make_topk_accuracy({{1}})->compute(split, context), "top1") == 1);
}

TEST_CASE("top-K accuracies agree with sets made by sorting") {
  MetricContext context;
  context.train_counts = {3, 19, 20, 50, 100, 101, 400, 5, 60};
  for (const int64_t levels : {0, 2, 4}) {
    // Labels of the first seven classes: two are absent.
    const SplitScores split = test::random_split(levels, 80, 9, levels ? at::kFloat : at::kDouble, levels, 7);
    const std::vector<int64_t> labels = test::to_vector(split.labels);
    const auto metric = make_topk_accuracy({{1, 2, 5, 9}});
    const EvaluationResult result = metric->compute(split, context);
    for (const int64_t k : {1, 2, 5, 9}) {
      std::vector<std::vector<int64_t>> sets;
      for (const auto& row : test::to_matrix(split.scores)) sets.push_back(test::slow_top_k(row, k));
      const auto group = [&](ShotGroup wanted) {
        return test::slow_macro(sets, labels, 9,
                                [&](int64_t c) { return shot_group(context.train_counts[c]) == wanted; });
      };
      CAPTURE(levels, k);
      CHECK(value_of(result, topk_name(k)) == Approx(test::slow_accuracy(sets, labels)).margin(1e-15));
      CHECK(value_of(result, "macro_" + topk_name(k)) ==
            Approx(test::slow_macro(sets, labels, 9, [](int64_t) { return true; })).margin(1e-15));
      CHECK(value_of(result, "few_" + topk_name(k)) == Approx(group(ShotGroup::kFew)).margin(1e-15));
      CHECK(value_of(result, "medium_" + topk_name(k)) == Approx(group(ShotGroup::kMedium)).margin(1e-15));
      CHECK(value_of(result, "many_" + topk_name(k)) == Approx(group(ShotGroup::kMany)).margin(1e-15));
    }
  }
}

TEST_CASE("top-K values come with the facts that were announced") {
  const auto metric = make_topk_accuracy({{5, 1}}, CountBinOptions{{3, 10}}.bins());
  MetricContext context;
  context.train_counts.assign(6, 10);
  const EvaluationResult result = metric->compute(test::random_split(1, 10, 6, at::kFloat), context);
  CHECK(test::facts_of(result.values) == test::facts_of(metric->facts()));
  CHECK(result.values.front().name == "top5");
  CHECK(result.values.back().name == "bin10_top1");
}

}  // namespace
}  // namespace settrain
