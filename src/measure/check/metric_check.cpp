#include "src/measure/check/metric_check.h"

#include <ATen/ops/ones_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "metrics/class_hits.h"
#include "metrics/entries.h"
#include "src/eval/evaluator.h"
#include "src/measure/check/metric_golden.h"

namespace settrain {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// The largest difference so far, and where it was.
struct WorstError {
  double error = 0;
  std::string where;

  void add(const std::string& name, double expected, double got) {
    double difference = std::abs(expected - got);
    if (std::isnan(difference)) difference = std::isnan(expected) && std::isnan(got) ? 0 : kInfinity;
    if (difference <= error) return;
    error = difference;
    where = fmt::format("{}: expected {}, got {}", name, expected, got);
  }

  CheckRow row(const std::string& name, const std::string& what, double tolerance) const {
    const bool passed = error <= tolerance;
    return {name, what, error, tolerance, passed, passed ? "" : where};
  }
};

double value_of(const EvaluationResult& result, const std::string& name) {
  for (const MetricValue& value : result.values) {
    if (value.name == name) return value.value;
  }
  return kInfinity;
}

// Empty where the sets are not measured.
std::vector<int64_t> set_sizes_of(const EvaluationResult& result, const std::string& name) {
  for (const SetSizeHistogram& sizes : result.set_sizes) {
    if (sizes.metric == name) return sizes.counts;
  }
  return {};
}

Evaluator make_evaluator(const MetricGolden& golden) {
  std::vector<std::unique_ptr<Metric>> metrics;
  metrics.push_back(make_topk_accuracy({golden.top_k}));
  metrics.push_back(make_average_k({golden.average_k, "raw", "keep_all", "val"}));
  MetricContext context;
  context.train_counts = golden.train_counts;
  return {std::move(metrics), std::move(context)};
}

CheckRow check_set_sizes(const MetricGolden& golden, const EvaluationResult& test) {
  WorstError worst;
  for (const SetSizeHistogram& expected : golden.test_set_sizes) {
    const std::vector<int64_t> counts = set_sizes_of(test, expected.metric);
    for (size_t size = 0; size < expected.counts.size(); ++size) {
      worst.add(fmt::format("test {} samples with {} classes", expected.metric, size),
                static_cast<double>(expected.counts[size]),
                size < counts.size() ? static_cast<double>(counts[size]) : kInfinity);
    }
  }
  return worst.row(golden.name, "set size histogram", 0);
}

CheckRow check_class_counts(const MetricGolden& golden, const SplitScores& test) {
  const ClassHits hits =
      count_hits(at::ones_like(test.labels, at::kBool), test.labels, static_cast<int64_t>(golden.train_counts.size()));
  const auto in_group = [&](ShotGroup group) { return shot_accuracy(hits, golden.train_counts, group).classes; };
  const int64_t got[] = {in_group(ShotGroup::kFew), in_group(ShotGroup::kMedium), in_group(ShotGroup::kMany),
                         macro_accuracy(hits).classes};
  const char* const names[] = {"few-shot classes", "medium-shot classes", "many-shot classes", "classes"};
  WorstError worst;
  for (size_t i = 0; i < std::size(got); ++i) {
    worst.add(names[i], static_cast<double>(golden.class_counts[i]), static_cast<double>(got[i]));
  }
  return worst.row(golden.name, "classes in the test labels", 0);
}

}  // namespace

std::vector<CheckRow> check_metrics(at::Device device, const std::vector<std::filesystem::path>& files) {
  std::vector<CheckRow> rows;
  for (const std::filesystem::path& file : files) {
    for (const MetricGolden& golden : read_metric_golden(file)) {
      const SplitScores val{golden.val.scores.to(device), golden.val.labels.to(device)};
      const SplitScores test{golden.test.scores.to(device), golden.test.labels.to(device)};
      const Evaluator evaluator = make_evaluator(golden);
      const EvaluationResult val_result = evaluator.evaluate(val);
      const EvaluationResult test_result = evaluator.evaluate(test, &val.scores);
      for (const ExpectedValues& expected : golden.expected) {
        WorstError worst;
        for (const auto& [name, value] : expected.val) worst.add("val " + name, value, value_of(val_result, name));
        for (const auto& [name, value] : expected.test) worst.add("test " + name, value, value_of(test_result, name));
        rows.push_back(worst.row(golden.name, expected.what, expected.tolerance));
      }
      rows.push_back(check_set_sizes(golden, test_result));
      rows.push_back(check_class_counts(golden, test));
    }
  }
  return rows;
}

}  // namespace settrain
