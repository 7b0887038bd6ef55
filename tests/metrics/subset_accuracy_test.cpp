#include <ATen/ATen.h>

#include <cmath>
#include <map>

#include "metrics/entries.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using test::value_of;

// Classes 0, 1, 3 are lupins; 2 and 4 are others.
MetricContext two_genera() {
  MetricContext context;
  context.train_counts = {5, 50, 500, 5, 50};
  context.superclass_of = {0, 0, 1, 0, 1};
  context.superclass_names = {"Lupinus", "Acer"};
  return context;
}

std::unique_ptr<Metric> subset_metric(SubsetOptions options, config::Integers top_k = {1, 2}, config::Reals k = {1.5}) {
  return make_subset_accuracy(std::move(options), {std::move(top_k)},
                              {std::move(k), AverageKScore::kSoftmax, Ties::kKeepAll, "val"});
}

TEST_CASE("a subset's accuracy is that of its images alone, with scores of all classes and a threshold of its own") {
  const SplitScores split = test::random_split(3, 200, 5, at::kDouble);
  const at::Tensor is_in = split.labels.ne(2).logical_and(split.labels.ne(4));
  const SplitScores lupins{split.scores.index({is_in}), split.labels.index({is_in})};
  const at::Tensor others = at::randn({50, 5}, at::kDouble);
  MetricContext context = two_genera();
  context.threshold_scores = &others;  // set other thresholds, but not those of the subset
  const auto metric = subset_metric({.superclasses = {"Lupinus"}, .images_per_class = SubsetOptions::kAll});
  const EvaluationResult result = metric->compute(split, context);
  CHECK(test::facts_of(result.values) == test::facts_of(metric->facts()));

  const EvaluationResult top = make_topk_accuracy({{1, 2}})->compute(lupins, two_genera());
  const EvaluationResult average =
      make_average_k({{1.5}, AverageKScore::kSoftmax, Ties::kKeepAll, "same"})->compute(lupins, two_genera());
  CHECK(value_of(result, "subset_top2") == value_of(top, "top2"));
  CHECK(value_of(result, "subset_macro_top1") == value_of(top, "macro_top1"));
  for (const char* name : {"avg1.5", "macro_avg1.5", "avg1.5_size", "avg1.5_lambda"}) {
    CHECK(value_of(result, std::string("subset_") + name) == value_of(average, name));
  }
  REQUIRE(result.set_sizes.size() == 1);
  CHECK(result.set_sizes[0].metric == "subset_avg1.5");
  CHECK(result.set_sizes[0].counts == average.set_sizes[0].counts);
}

TEST_CASE("at most so many images of a class are measured, drawn by the seed") {
  // Sample i has all its score on its own label where i is even.
  SplitScores split{at::zeros({60, 5}, at::kDouble), at::arange(60, at::kLong).remainder(5)};
  for (int64_t i = 0; i < 60; ++i) split.scores[i][i % 2 == 0 ? i % 5 : (i + 1) % 5] = 1;
  const auto measured = [&](int64_t images, int64_t seed, const config::Texts& names = {}) {
    return subset_metric({.superclasses = names, .images_per_class = images, .seed = seed})
        ->compute(split, two_genera());
  };
  const auto images_in = [](const EvaluationResult& result) {
    int64_t sum = 0;
    for (const int64_t count : result.set_sizes.at(0).counts) sum += count;
    return sum;
  };
  CHECK(images_in(measured(5, 1)) == 25);
  CHECK(images_in(measured(12, 1)) == 60);
  CHECK(images_in(measured(100, 1)) == 60);
  CHECK(images_in(measured(5, 1, {"Acer"})) == 10);
  CHECK(value_of(measured(5, 1), "subset_top1") == value_of(measured(5, 1), "subset_top1"));
  std::map<double, int64_t> seen;
  double sum = 0;
  for (int64_t seed = 0; seed < 400; ++seed) {
    const double top1 = value_of(measured(1, seed, {"Acer"}), "subset_top1");
    ++seen[top1];
    sum += top1;
  }
  CHECK(seen.size() == 3);                  // 0, 1 or 2 of two images are right
  CHECK(std::abs(sum / 400 - 0.5) < 0.08);  // half of each class' images are; 4.5 standard deviations
}

TEST_CASE("of samples that are drawn from the split, those of the subset count") {
  const SplitScores split = test::random_split(5, 80, 5, at::kDouble);
  const auto metric = subset_metric({.superclasses = {"Acer"}, .images_per_class = SubsetOptions::kAll});
  const ResultsOfSamples results = metric->prepare(split, two_genera());
  const at::Tensor drawn = at::randint(80, {300}, at::kLong);
  const SplitScores resampled{split.scores.index_select(0, drawn), split.labels.index_select(0, drawn)};
  const EvaluationResult expected = metric->compute(resampled, two_genera()), found = results(drawn);
  for (const MetricValue& value : expected.values) CHECK(value_of(found, value.name) == value.value);

  const at::Tensor none = at::nonzero(split.labels.eq(1)).squeeze(1);
  CHECK(std::isnan(value_of(results(none), "subset_top1")));
  CHECK(test::facts_of(results(none).values) == test::facts_of(metric->facts()));
}

TEST_CASE("without an image of the subset there is no value, and without a wish no metric") {
  SplitScores split = test::random_split(5, 20, 5, at::kDouble);
  split.labels.fill_(1);
  const auto metric = subset_metric({.superclasses = {"Acer"}, .images_per_class = 5});
  CHECK(std::isnan(value_of(metric->compute(split, two_genera()), "subset_avg1.5")));
  CHECK(subset_metric({.images_per_class = SubsetOptions::kAll})->facts().empty());
  CHECK(subset_metric({.superclasses = {"Acer"}}, {}, {})->facts().empty());
}

}  // namespace
}  // namespace settrain
