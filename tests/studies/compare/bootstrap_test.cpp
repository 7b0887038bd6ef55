#include "src/studies/compare/bootstrap.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "metrics/entries.h"
#include "metrics/sets/rule_metrics.h"
#include "src/core/error.h"
#include "tests/metrics/random_split.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

std::shared_ptr<const Evaluator> make_evaluator() {
  std::vector<std::unique_ptr<Metric>> metrics;
  metrics.push_back(make_topk_accuracy({{1, 2}}));
  metrics.push_back(make_average_k({{2}, AverageKScore::kSoftmax, Ties::kKeepAll, "val"}));
  MetricContext context;
  context.train_counts = {1, 30, 300, 1};
  return std::make_shared<const Evaluator>(std::move(metrics), context);
}

// Two models' answers to the same 200 images.
std::pair<ScoredRun, ScoredRun> two_runs() {
  ScoredRun first{make_evaluator(), test::random_split(1, 200, 4, at::kFloat), at::randn({50, 4})};
  ScoredRun second = first;
  second.split.scores = first.split.scores + at::one_hot(first.split.labels, 4).to(at::kFloat) * 0.5;
  return {first, second};
}

std::vector<BootstrapInterval> bootstrap(const ScoredRun& first, const ScoredRun& second,
                                         const std::vector<std::string>& metrics, BootstrapOptions options) {
  ProgressBar bar(ProgressOutput{nullptr, {}, [](std::string_view) {}, [] { return 0.0; }});
  return paired_bootstrap(first, second, metrics, options, "test", bar);
}

}  // namespace

TEST_CASE("Resampled indices are a function of seed and resample") {
  const at::Tensor indices = resample_indices(3, 5, 1001);
  CHECK(at::equal(indices, resample_indices(3, 5, 1001)));
  CHECK_FALSE(at::equal(indices, resample_indices(3, 6, 1001)));
  CHECK_FALSE(at::equal(indices, resample_indices(4, 5, 1001)));
  CHECK(indices.min().item<int64_t>() >= 0);
  CHECK(indices.max().item<int64_t>() < 1001);
  CHECK(resample_indices(0, 0, 1).item<int64_t>() == 0);
}

TEST_CASE("Comparisons repeat those of earlier versions: the indices of a seed stay") {
  // By an implementation of Philox in Python, under the key 3 xor 0xB8E1AFED6A267E96.
  CHECK(at::equal(resample_indices(3, 5, 8), at::tensor({3, 5, 3, 1, 7, 7, 1, 7}, at::kLong)));
}

TEST_CASE("Every image is as likely as every other") {
  at::Tensor counts = at::zeros({10}, at::kLong);
  for (int64_t r = 0; r < 2000; ++r) counts += at::bincount(resample_indices(1, r, 10), {}, 10);
  // 2000 of 20000 each; chi squared with 9 degrees of freedom is under 27.9 in 999 of 1000 cases.
  const at::Tensor excess = counts.to(at::kDouble) - 2000;
  CHECK((excess * excess / 2000).sum().item<double>() < 27.9);
}

TEST_CASE("Percentiles lie on straight lines between the values") {
  CHECK(percentile({3, 1, 2}, 0.5) == 2);
  CHECK(percentile({3, 1, 2}, 0) == 1);
  CHECK(percentile({3, 1, 2}, 1) == 3);
  CHECK(percentile({0, 10}, 0.025) == Approx(0.25));
  CHECK(percentile({7}, 0.975) == 7);
  CHECK(std::isnan(percentile({1, std::numeric_limits<double>::quiet_NaN(), 2}, 0.5)));
}

TEST_CASE("The interval of top-1 is that of the differences by image") {
  const auto [first, second] = two_runs();
  const auto hits = [](const ScoredRun& run) {
    return run.split.scores.argmax(1).eq(run.split.labels).to(at::kDouble);
  };
  const at::Tensor gain = hits(second) - hits(first);
  std::vector<double> differences;
  for (int64_t r = 0; r < 300; ++r) {
    differences.push_back(gain.index_select(0, resample_indices(8, r, 200)).mean().item<double>());
  }
  const BootstrapInterval interval = bootstrap(first, second, {"top1"}, {300, 8}).front();
  CHECK(interval.difference == Approx(gain.mean().item<double>()));
  CHECK(interval.low == Approx(percentile(differences, 0.025)));
  CHECK(interval.high == Approx(percentile(differences, 0.975)));
  CHECK(interval.low < interval.difference);
  CHECK(interval.difference < interval.high);
  // As wide as the normal approximation says, by and large.
  const double error = gain.std().item<double>() / std::sqrt(200.0);
  CHECK((interval.high - interval.low) / (2 * 1.96 * error) == Approx(1).epsilon(0.15));
}

TEST_CASE("Every metric's interval is that of the drawn images' scores, judged anew in every resample") {
  auto [first, second] = two_runs();
  const bool own_thresholds = GENERATE(false, true);
  if (own_thresholds) first.threshold_scores = second.threshold_scores = std::nullopt;
  const std::vector<std::string> metrics = test::names_of(first.evaluator->facts());
  std::vector<std::vector<double>> differences(metrics.size());
  for (int64_t r = 0; r < 40; ++r) {
    const at::Tensor drawn = resample_indices(8, r, 200);
    const auto judged = [&](const ScoredRun& run) {
      const SplitScores rows{run.split.scores.index_select(0, drawn), run.split.labels.index_select(0, drawn)};
      return run.evaluator->evaluate(rows, run.threshold_scores ? &*run.threshold_scores : nullptr);
    };
    const EvaluationResult before = judged(first), after = judged(second);
    for (size_t m = 0; m < metrics.size(); ++m) {
      differences[m].push_back(after.values[m].value - before.values[m].value);
    }
  }
  const auto intervals = bootstrap(first, second, metrics, {40, 8});
  for (size_t m = 0; m < metrics.size(); ++m) {
    CAPTURE(metrics[m], own_thresholds);
    CHECK(intervals[m].low == percentile(differences[m], 0.025));
    CHECK(intervals[m].high == percentile(differences[m], 0.975));
  }
}

TEST_CASE("Set rules are calibrated once, and judge the drawn images") {
  std::vector<std::unique_ptr<Metric>> metrics;
  metrics.push_back(make_rule_metrics({parse_set_rule("conformal:lac:0.3")}));
  MetricContext context;
  context.train_counts = {1, 30, 300, 1};
  auto [first, second] = two_runs();
  first.evaluator = second.evaluator = std::make_shared<const Evaluator>(std::move(metrics), context);
  first.calibration = second.calibration = test::random_split(9, 100, 4, at::kFloat);
  const std::string name = "coverage@conformal:lac:0.3";
  const auto of_drawn = [&](const ScoredRun& run, int64_t resample) {
    const at::Tensor drawn = resample_indices(8, resample, 200);
    const SplitScores rows{run.split.scores.index_select(0, drawn), run.split.labels.index_select(0, drawn)};
    return test::value_of(run.evaluator->evaluate(rows, nullptr, &*run.calibration), name);
  };
  std::vector<double> differences;
  for (int64_t r = 0; r < 40; ++r) differences.push_back(of_drawn(second, r) - of_drawn(first, r));
  const BootstrapInterval interval = bootstrap(first, second, {name}, {40, 8}).front();
  CHECK(interval.low == percentile(differences, 0.025));
  CHECK(interval.high == percentile(differences, 0.975));
}

TEST_CASE("A split is judged once a run, however many resamples there are") {
  struct Counted : Metric {
    mutable int prepared = 0;
    std::vector<MetricValue> facts() const override { return {{"samples", 0}}; }
    ResultsOfSamples prepare(const SplitScores& split, const MetricContext&) const override {
      ++prepared;
      const auto all = static_cast<double>(split.labels.size(0));
      return [all](const at::Tensor& samples) {
        return EvaluationResult{{{"samples", samples.defined() ? static_cast<double>(samples.size(0)) : all}}, {}};
      };
    }
  };
  auto [first, second] = two_runs();
  auto metric = std::make_unique<Counted>();
  const Counted& counted = *metric;
  std::vector<std::unique_ptr<Metric>> metrics;
  metrics.push_back(std::move(metric));
  MetricContext context;
  context.train_counts = {1, 30, 300, 1};
  first.evaluator = second.evaluator = std::make_shared<const Evaluator>(std::move(metrics), context);
  CHECK(bootstrap(first, second, {"samples"}, {20, 1})[0].difference == 0);
  CHECK(counted.prepared == 2);  // once a run
}

TEST_CASE("A bootstrap repeats with its seed, and swaps its sign with the runs") {
  const auto [first, second] = two_runs();
  const std::vector<std::string> metrics{"top2", "macro_top1", "avg2", "avg2_size"};
  const auto once = bootstrap(first, second, metrics, {100, 5}), again = bootstrap(first, second, metrics, {100, 5});
  const auto swapped = bootstrap(second, first, metrics, {100, 5});
  for (size_t m = 0; m < metrics.size(); ++m) {
    CAPTURE(metrics[m]);
    CHECK(once[m].low == again[m].low);
    CHECK(once[m].high == again[m].high);
    CHECK(once[m].difference == -swapped[m].difference);
    CHECK(once[m].low == Approx(-swapped[m].high));
  }
  CHECK(once[0].low != bootstrap(first, second, metrics, {100, 6})[0].low);
}

TEST_CASE("A run against itself differs by exactly 0") {
  const auto [first, second] = two_runs();
  for (const BootstrapInterval& interval : bootstrap(first, first, {"top1", "macro_top2", "avg2"}, {50, 1})) {
    CHECK(interval.difference == 0);
    CHECK(interval.low == 0);
    CHECK(interval.high == 0);
  }
}

TEST_CASE("Runs with other labels, and unknown metrics, are refused") {
  auto [first, second] = two_runs();
  CHECK_THROWS_AS(bootstrap(first, second, {"top7"}, {50, 1}), std::invalid_argument);
  second.split.label_sets = at::ones({second.split.scores.size(0), 4}, at::kBool);
  CHECK_THROWS_AS(bootstrap(first, second, {"top1"}, {50, 1}), ShapeError);
  second.split.label_sets = at::Tensor();
  second.split.labels = (second.split.labels + 1) % 4;
  CHECK_THROWS_AS(bootstrap(first, second, {"top1"}, {50, 1}), ShapeError);
}
