#include <ATen/ATen.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "metrics/class_hits.h"
#include "metrics/entries.h"
#include "tests/metrics/random_split.h"
#include "tests/metrics/slow_metrics.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using test::value_of;

constexpr double kInf = std::numeric_limits<double>::infinity();

MetricContext context_of(std::vector<int64_t> train_counts) {
  MetricContext context;
  context.train_counts = std::move(train_counts);
  return context;
}

std::unique_ptr<Metric> raw(config::Reals ks, Ties ties = Ties::kKeepAll, config::Integers bounds = {}) {
  return make_average_k({std::move(ks), AverageKScore::kRaw, ties, "val"}, CountBinOptions{std::move(bounds)}.bins());
}

AverageKOptions average_k_of(config::Reals ks, AverageKScore score, Ties ties) {
  return {.average_k = std::move(ks), .average_k_score = score, .average_k_ties = ties, .threshold_from = "same"};
}

std::vector<int64_t> sizes_of(const EvaluationResult& result, const std::string& name) {
  for (const SetSizeHistogram& histogram : result.set_sizes) {
    if (histogram.metric == name) return histogram.counts;
  }
  return {};
}

TEST_CASE("sets hold K classes on average where float32 has probabilities of 0 and 1") {
  // The probabilities of most classes are 0 in float32, and those of most largest ones 1.
  for (const auto& [k, scale] : {std::pair(0.25, 40.0), {5.0, 100.0}, {12.0, 100.0}}) {
    SplitScores split = test::random_split(3, 400, 20, at::kFloat);
    split.scores.mul_(scale);
    const EvaluationResult result = make_average_k(average_k_of({k}, AverageKScore::kSoftmax, Ties::kKeepAll))
                                        ->prepare(split, {.train_counts = std::vector<int64_t>(20, 1)})({});
    CHECK(test::value_of(result, average_k_name(k) + "_size") == Approx(k).epsilon(1e-9));
  }
}

TEST_CASE("sets hold K classes on average where float64 has probabilities of 0 and 1") {
  // The oracle has no underflow: log-probabilities, and a sigmoid's logits, order as probabilities do.
  for (const auto score : {AverageKScore::kSoftmax, AverageKScore::kSigmoid}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      SplitScores split = test::random_split(3, 400, 20, dtype);
      split.scores.mul_(4000);
      split.scores.select(1, 3).copy_(split.scores.select(1, 4) - 0.5);  // two probabilities that are neither 0 nor 1
      const AverageKOptions options = average_k_of({2, 5, 12.5}, score, Ties::kKeepAll);
      const AverageKValues got = average_k_values(options, split, {});
      const at::Tensor exact = split.scores.to(at::kDouble);
      const at::Tensor order = score == AverageKScore::kSoftmax ? at::log_softmax(exact, 1) : exact;
      const std::vector<double> expected = average_k_thresholds(order, options.average_k, Ties::kKeepAll);
      for (size_t i = 0; i < expected.size(); ++i) {
        CAPTURE(static_cast<int>(score), dtype, options.average_k[i]);
        CHECK(returned_classes(got.values, got.lambdas[i], got.ties)
                  .equal(returned_classes(order, expected[i], Ties::kKeepAll)));
        CHECK(got.shown(got.lambdas[i]) >= 0);
        CHECK(got.shown(got.lambdas[i]) <= 1);
      }
    }
  }
}

TEST_CASE("the threshold of other images is the mean of two probabilities, however small they are") {
  // Log-probabilities of about 0, -700 and -900: the threshold of K = 2 is the logarithm of their mean, -700 - log 2.
  const at::Tensor others = at::tensor({0., -700., -900.}, at::kDouble).view({1, 3});
  const SplitScores split{at::tensor({0., -700.6, -700.8}, at::kDouble).view({1, 3}), at::zeros(1, at::kLong)};
  MetricContext context;
  context.threshold_scores = &others;
  const AverageKValues got =
      average_k_values(average_k_of({2, 0.5}, AverageKScore::kSoftmax, Ties::kKeepAll), split, context);
  CHECK(set_sizes(got.values, got.lambdas, got.ties).select(0, 0).item<int64_t>() == 2);
  CHECK(got.lambdas[0] == Approx(-700 - std::log(2.0)).epsilon(1e-12));
  CHECK(got.shown(got.lambdas[0]) == Approx(std::exp(-700 - std::log(2.0))).epsilon(1e-9));
  CHECK(std::isinf(got.shown(got.lambdas[1])));  // K = 1/2 of one image returns nothing

  // And at the other end: 1 - p of exp(-50) and exp(-60).
  const at::Tensor sure = at::tensor({50., 60.}, at::kDouble).view({1, 2});
  const SplitScores sigmoids{at::tensor({50.6, 50.8}, at::kDouble).view({1, 2}), at::zeros(1, at::kLong)};
  context.threshold_scores = &sure;
  const AverageKValues large =
      average_k_values(average_k_of({1}, AverageKScore::kSigmoid, Ties::kKeepAll), sigmoids, context);
  CHECK(set_sizes(large.values, large.lambdas, large.ties).item<int64_t>() == 1);
}

TEST_CASE("equal scores of a sure network tie") {
  SplitScores split{at::tensor({5000., 5000., 0., 0., 0., -9000., -9000., -9000.}, at::kFloat).view({2, 4}),
                    at::zeros(2, at::kLong)};
  const AverageKValues got =
      average_k_values(average_k_of({1, 1.5, 2.5}, AverageKScore::kSoftmax, Ties::kKeepAll), split, {});
  CHECK(set_sizes(got.values, got.lambdas, got.ties).equal(at::tensor({2, 1, 2, 1, 4, 1}, at::kLong).view({3, 2})));

  // The mean of two equal probabilities, which is rounded, lies above 17.25 and below 15.375.
  for (const double tied : {15.375, 17.25}) {
    split.scores = at::tensor({tied, tied, -5., tied, -5., -5.}, at::kFloat).view({2, 3});
    for (const auto& [ties, sizes] : {std::pair(Ties::kKeepAll, std::pair(2, 1)), {Ties::kStrict, {0, 0}}}) {
      const AverageKValues sigmoids = average_k_values(average_k_of({1}, AverageKScore::kSigmoid, ties), split, {});
      const at::Tensor expected = at::tensor({sizes.first, sizes.second}, at::kLong).view({1, 2});
      CHECK(set_sizes(sigmoids.values, sigmoids.lambdas, ties).equal(expected));
    }
  }

  // Images whose scores differ by a constant have the same probabilities.
  split.scores = at::tensor({40., 0., 0.5, 5040., 5000., 5000.5}, at::kFloat).view({2, 3});
  const AverageKValues shifted =
      average_k_values(average_k_of({0.5}, AverageKScore::kSoftmax, Ties::kKeepAll), split, {});
  CHECK(shifted.are_log_odds);
  CHECK(shifted.values[0].equal(shifted.values[1]));
}

TEST_CASE("sets of fewer than one class on average are those of the surest images") {
  SplitScores split = test::random_split(5, 300, 6, at::kFloat);
  split.scores.mul_(4000);
  const AverageKValues got = average_k_values(average_k_of({0.5}, AverageKScore::kSoftmax, Ties::kKeepAll), split, {});
  const auto largest = std::get<0>(split.scores.to(at::kDouble).sort(1, /*descending=*/true));
  const at::Tensor odds = largest.select(1, 0) - at::logsumexp(largest.slice(1, 1), {1});
  const at::Tensor surest = odds.ge(std::get<0>(odds.topk(150)).min());
  CHECK(set_sizes(got.values, got.lambdas, got.ties)[0].eq(1).equal(surest));
}

TEST_CASE("log-odds are scaled, cut for some images and shown as probabilities") {
  const SplitScores split = test::random_split(4, 200, 8, at::kFloat);
  MetricContext context = context_of(std::vector<int64_t>(8, 1));
  context.score_scale = 4000;
  const auto metric = make_average_k(average_k_of({3}, AverageKScore::kSoftmax, Ties::kStrict));
  const at::Tensor samples = at::arange(50, 150);
  const SplitScores part{split.scores.slice(0, 50, 150), split.labels.slice(0, 50, 150)};
  const SplitScores scaled{part.scores * 4000, part.labels};
  const EvaluationResult some = metric->prepare(split, context)(samples), alone = metric->prepare(part, context)({});
  const EvaluationResult same = metric->prepare(scaled, context_of(std::vector<int64_t>(8, 1)))({});
  for (const auto* other : {&alone, &same}) {
    for (const char* name : {"avg3", "avg3_size", "avg3_lambda"}) CHECK(value_of(some, name) == value_of(*other, name));
    CHECK(sizes_of(some, "avg3") == sizes_of(*other, "avg3"));
  }
  CHECK(value_of(some, "avg3_size") == 3);
  CHECK(value_of(some, "avg3_lambda") >= 0);
  CHECK(value_of(some, "avg3_lambda") < 1e-30);
}

TEST_CASE("average-K names show whole and fractional K") {
  CHECK(average_k_name(2) == "avg2");
  CHECK(average_k_name(2.5) == "avg2.5");
  CHECK(average_k_name(0.1) == "avg0.1");
  CHECK(average_k_name(1000) == "avg1000");
}

TEST_CASE("average-K of two samples, by hand") {
  SplitScores split;
  split.scores = at::tensor({.9, .1, .0, .4, .35, .25}, at::kDouble).view({2, 3});
  split.labels = at::tensor({0, 1}, at::kLong);
  const EvaluationResult result =
      raw({1, 1.5, 3, 0.25}, Ties::kKeepAll, {20, 50})->compute(split, context_of({10, 50, 500}));
  // Largest first: .9 .4 | .35 | .25 .1 0
  CHECK(value_of(result, "avg1_lambda") == Approx(.375).epsilon(1e-15));
  CHECK(value_of(result, "avg1") == 0.5);
  CHECK(value_of(result, "avg1_size") == 1);
  CHECK(value_of(result, "few_avg1") == 1);
  CHECK(value_of(result, "medium_avg1") == 0);
  CHECK(std::isnan(value_of(result, "many_avg1")));
  CHECK(value_of(result, "bin0_19_avg1") == 1);
  CHECK(std::isnan(value_of(result, "bin20_49_avg1")));
  CHECK(value_of(result, "bin50_avg1") == 0);
  CHECK(value_of(result, "bin50_avg1.5") == 1);
  CHECK(value_of(result, "avg1.5_lambda") == Approx(.3).epsilon(1e-15));
  CHECK(value_of(result, "avg1.5") == 1);
  CHECK(value_of(result, "avg1.5_size") == 1.5);
  CHECK(value_of(result, "avg3") == 1);
  CHECK(value_of(result, "avg3_size") == 3);
  CHECK(value_of(result, "avg3_lambda") == -kInf);
  CHECK(value_of(result, "avg0.25") == 0);
  CHECK(value_of(result, "avg0.25_size") == 0);
  CHECK(value_of(result, "avg0.25_lambda") == kInf);
  CHECK(sizes_of(result, "avg1.5") == std::vector<int64_t>{0, 1, 1, 0});
}

TEST_CASE("set sizes of shot groups, by hand") {
  SplitScores split;
  split.scores = at::tensor({.9, .1, .0, .8, .7, .2, .6, .3, .1, .1, .2, .3}, at::kDouble).view({4, 3});
  split.labels = at::tensor({0, 1, 0, 2}, at::kLong);
  // Largest first: .9 .8 .7 .6 | .3, so that the sets are {0}, {0, 1}, {0} and {}.
  const EvaluationResult result = raw({1, 3})->compute(split, context_of({19, 20, 100}));
  std::vector<std::string> names;
  for (const SetSizeHistogram& histogram : result.set_sizes) names.push_back(histogram.metric);
  CHECK(names == std::vector<std::string>{"avg1", "few_avg1", "medium_avg1", "avg3", "few_avg3", "medium_avg3"});
  CHECK(sizes_of(result, "avg1") == std::vector<int64_t>{1, 2, 1, 0});
  CHECK(sizes_of(result, "few_avg1") == std::vector<int64_t>{0, 2, 0, 0});
  CHECK(sizes_of(result, "medium_avg1") == std::vector<int64_t>{1, 0, 1, 0});
  CHECK(sizes_of(result, "few_avg3") == std::vector<int64_t>{0, 0, 0, 2});

  // A class without a sample makes no group.
  const EvaluationResult many = raw({1})->compute(split, context_of({101, 500, 101}));
  REQUIRE(many.set_sizes.size() == 2);
  CHECK(sizes_of(many, "many_avg1") == sizes_of(many, "avg1"));
}

TEST_CASE("constant scores return every class, or none where ties are strict") {
  const SplitScores split{at::full({5, 4}, 0.25F), at::tensor({0, 1, 2, 3, 0}, at::kLong)};
  const EvaluationResult all = raw({2})->compute(split, context_of({1, 1, 1, 1}));
  CHECK(value_of(all, "avg2") == 1);
  CHECK(value_of(all, "avg2_size") == 4);
  CHECK(value_of(all, "avg2_lambda") == 0.25);
  const EvaluationResult none = raw({2}, Ties::kStrict)->compute(split, context_of({1, 1, 1, 1}));
  CHECK(value_of(none, "avg2") == 0);
  CHECK(value_of(none, "avg2_size") == 0);
}

TEST_CASE("average-K agrees with Algorithm 1 written with a full sort") {
  const MetricContext base = context_of({3, 19, 20, 50, 100, 101, 400});
  for (uint64_t seed = 0; seed < 24; ++seed) {
    const at::ScalarType dtype = seed % 2 ? at::kFloat : at::kDouble;
    const int64_t levels = seed % 3 == 0 ? 0 : 5;
    const bool strict = seed % 4 >= 2;
    const SplitScores val = test::random_split(seed, 23, 7, dtype, levels);
    const SplitScores test = test::random_split(seed + 100, 31, 7, dtype, levels, 6);
    const std::vector<int64_t> labels = test::to_vector(test.labels);
    MetricContext context = base;
    context.threshold_scores = &val.scores;
    const config::Reals ks{0.5, 1, 2.4, 6.5};
    const EvaluationResult result = raw(ks, strict ? Ties::kStrict : Ties::kKeepAll)->compute(test, context);
    for (const double k : ks) {
      const auto expected = test::slow_average_k(test::to_matrix(test.scores), test::to_matrix(val.scores), k, strict);
      const std::string name = average_k_name(k);
      const auto group = [&](ShotGroup wanted) {
        return test::slow_macro(expected.sets, labels, 7,
                                [&](int64_t c) { return shot_group(context.train_counts[c]) == wanted; });
      };
      double returned = 0;
      for (const auto& set : expected.sets) returned += static_cast<double>(set.size());
      CAPTURE(seed, k, strict);
      CHECK(value_of(result, name + "_lambda") == Approx(expected.lambda).margin(1e-15));
      CHECK(value_of(result, name) == Approx(test::slow_accuracy(expected.sets, labels)).margin(1e-15));
      CHECK(value_of(result, name + "_size") == Approx(returned / 31).margin(1e-15));
      CHECK(value_of(result, "macro_" + name) ==
            Approx(test::slow_macro(expected.sets, labels, 7, [](int64_t) { return true; })).margin(1e-15));
      CHECK(value_of(result, "few_" + name) == Approx(group(ShotGroup::kFew)).margin(1e-15));
      CHECK(value_of(result, "medium_" + name) == Approx(group(ShotGroup::kMedium)).margin(1e-15));
    }
  }
}

TEST_CASE("a set size histogram counts every sample once") {
  const SplitScores split = test::random_split(5, 50, 6, at::kFloat);
  const EvaluationResult result = raw({1, 2.5})->compute(split, context_of({1, 30, 300, 1, 30, 300}));
  REQUIRE(result.set_sizes.size() == 8);
  for (const std::string name : {"avg1", "avg2.5"}) {
    const std::vector<int64_t> counts = sizes_of(result, name), few = sizes_of(result, "few_" + name),
                               medium = sizes_of(result, "medium_" + name), many = sizes_of(result, "many_" + name);
    REQUIRE(counts.size() == 7);
    CHECK(std::accumulate(counts.begin(), counts.end(), int64_t{0}) == 50);
    double returned = 0;
    for (size_t size = 0; size < 7; ++size) {
      returned += static_cast<double>(size) * static_cast<double>(counts[size]);
      CHECK(few.at(size) + medium.at(size) + many.at(size) == counts[size]);
    }
    CHECK(returned / 50 == value_of(result, name + "_size"));
  }
}

TEST_CASE("softmax and sigmoid apply to scaled scores, raw values stay as they are") {
  SplitScores split{at::tensor({1., 0., -1., .5}, at::kDouble).view({2, 2}), at::tensor({0, 0}, at::kLong)};
  MetricContext context = context_of({1, 1});
  context.score_scale = 3;
  const auto lambda = [&](AverageKScore score) {
    return value_of(make_average_k({{0.5}, score, Ties::kKeepAll, "val"})->compute(split, context), "avg0.5_lambda");
  };
  const auto sigmoid = [](double x) { return 1 / (1 + std::exp(-x)); };
  // The largest two of (1, 0) and (-1, .5): the softmax of two scores is the sigmoid of their difference.
  CHECK(lambda(AverageKScore::kSoftmax) == Approx((sigmoid(3 * 1.5) + sigmoid(3 * 1.0)) / 2).epsilon(1e-14));
  CHECK(lambda(AverageKScore::kSigmoid) == Approx((sigmoid(3 * 1.0) + sigmoid(3 * 0.5)) / 2).epsilon(1e-14));
  CHECK(lambda(AverageKScore::kRaw) == 0.75);
}

TEST_CASE("softmax of large scores stays finite") {
  SplitScores split{at::tensor({1e4F, 0.F, -1e4F, 9e3F}).view({2, 2}), at::tensor({0, 1}, at::kLong)};
  const EvaluationResult result =
      make_average_k({{1}, AverageKScore::kSoftmax, Ties::kKeepAll, "val"})->compute(split, context_of({1, 1}));
  CHECK(value_of(result, "avg1") == 1);
  CHECK(value_of(result, "avg1_size") == 1);
  CHECK(value_of(result, "avg1_lambda") == 0.5);
}

TEST_CASE("average-K values come with the facts that were announced") {
  const auto metric = raw({5, 2.5}, Ties::kKeepAll, {1, 2});
  const EvaluationResult result =
      metric->compute(test::random_split(1, 10, 6, at::kFloat), context_of({1, 1, 1, 1, 1, 1}));
  CHECK(test::facts_of(result.values) == test::facts_of(metric->facts()));
  CHECK(raw({})->compute(test::random_split(1, 10, 6, at::kFloat), context_of({1, 1, 1, 1, 1, 1})).values.empty());
}

}  // namespace
}  // namespace settrain
