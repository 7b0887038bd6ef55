#include <ATen/ops/empty.h>
#include <ATen/ops/ones_like.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <memory>
#include <string>
#include <utility>

#include "metrics/class_hits.h"
#include "metrics/entries.h"
#include "src/eval/evaluator.h"
#include "src/measure/check/checks.h"
#include "src/measure/check/json_place.h"
#include "src/measure/check/tolerance.h"

namespace settrain {
namespace {

// Expected numbers of one kind, by the names that the metrics give them. NaN: undefined (null in the file).
struct ExpectedValues {
  std::string what;
  double tolerance;
  std::vector<MetricValue> val{};   // of the validation split, with its own thresholds
  std::vector<MetricValue> test{};  // of the test split, with the validation split's thresholds
};

struct MetricGolden {
  std::string name;
  config::Integers top_k;
  config::Reals average_k;
  std::vector<int64_t> train_counts;  // [classes]
  SplitScores val, test;              // [samples, classes] float64 class probabilities, to be used as they are
  std::vector<ExpectedValues> expected;
  std::vector<SetSizeHistogram> test_set_sizes;
  std::vector<int64_t> class_counts;  // classes in the test labels: few-, medium-, many-shot, all
};

constexpr int64_t kAnyCount = std::numeric_limits<int64_t>::max();

std::vector<int64_t> read_counts(const JsonPlace& place, int64_t size) {
  std::vector<int64_t> counts;
  for (const JsonPlace& element : place.elements(size)) counts.push_back(element.integer(0, kAnyCount));
  return counts;
}

double real_or_undefined(const JsonPlace& place) {
  return place.is_null() ? std::numeric_limits<double>::quiet_NaN() : place.real();
}

SplitScores read_split(const JsonPlace& place, int64_t classes) {
  const std::vector<JsonPlace> labels = place["labels"].elements();
  const auto samples = static_cast<int64_t>(labels.size());
  if (samples == 0) place["labels"].fail("at least one label");
  SplitScores split{at::empty({samples, classes}, at::kDouble), at::empty({samples}, at::kLong)};
  int64_t* label = split.labels.mutable_data_ptr<int64_t>();
  for (const JsonPlace& element : labels) *label++ = element.integer(0, classes - 1);
  double* probability = split.scores.mutable_data_ptr<double>();
  for (const JsonPlace& row : place["probabilities"].elements(samples)) {
    for (const JsonPlace& element : row.elements(classes)) *probability++ = element.real();
  }
  return split;
}

// Adds the accuracies over classes from a macro average and an object of shot groups.
void add_class_means(std::vector<MetricValue>& values, const std::string& sets, const JsonPlace& macro,
                     const JsonPlace& groups) {
  values.push_back({"macro_" + sets, macro.real()});
  for (const std::string group : {"few", "medium", "many"}) {
    values.push_back({group + "_" + sets, real_or_undefined(groups[group])});
  }
}

MetricGolden read_metric_case(const JsonPlace& place) {
  const int64_t classes = place["num_classes"].integer(1, kAnyCount);
  MetricGolden golden;
  golden.name = place["name"].text();
  golden.train_counts = read_counts(place["train_counts"], classes);
  golden.val = read_split(place["val"], classes);
  golden.test = read_split(place["test"], classes);

  const JsonPlace expected = place["expected"];
  ExpectedValues topk{"top-K accuracy", kFractionTolerance},
      topk_means{"top-K accuracy over classes", kFractionTolerance};
  for (const JsonPlace& k : place["k_values"].elements()) {
    golden.top_k.push_back(k.integer(1, kAnyCount));
    const std::string key = std::to_string(golden.top_k.back()), sets = topk_name(golden.top_k.back());
    topk.test.push_back({sets, expected["topk_accuracy"][key].real()});
    add_class_means(topk_means.test, sets, expected["macro_topk_accuracy"][key], expected["shot_topk_accuracy"][key]);
  }

  ExpectedValues lambda{"average-K threshold", kThresholdTolerance}, accuracy{"average-K accuracy", kFractionTolerance},
      means{"average-K accuracy over classes", kFractionTolerance}, size{"mean set size", kFractionTolerance};
  for (const JsonPlace& k : place["average_k_values"].elements()) {
    if (k.real() <= 0) k.fail("a number above 0");
    golden.average_k.push_back(k.real());
    const std::string sets = average_k_name(k.real());
    const JsonPlace values = expected["average_k"][fmt::format("{}", k.real())];
    lambda.val.push_back({sets + "_lambda", values["lambda"].real()});
    lambda.test.push_back({sets + "_lambda", values["lambda"].real()});
    accuracy.val.push_back({sets, values["val_accuracy"].real()});
    accuracy.test.push_back({sets, values["test_accuracy"].real()});
    accuracy.test.push_back({sets, values["test_coverage"].real()});
    size.val.push_back({sets + "_size", values["val_mean_set_size"].real()});
    size.test.push_back({sets + "_size", values["test_mean_set_size"].real()});
    add_class_means(means.test, sets, values["test_macro_accuracy"], values["test_shot_accuracy"]);
    golden.test_set_sizes.push_back({sets, read_counts(values["test_set_size_histogram"], classes + 1)});
  }
  golden.expected = {topk, topk_means, lambda, accuracy, means, size};

  const JsonPlace groups = expected["shot_class_counts"];
  for (const char* group : {"few", "medium", "many"}) golden.class_counts.push_back(groups[group].integer(0, classes));
  golden.class_counts.push_back(expected["classes_present"].integer(0, classes));
  return golden;
}

constexpr double kInfinity = std::numeric_limits<double>::infinity();

void compare(WorstError& worst, const std::string& name, double expected, double got) {
  if (std::isnan(expected) && std::isnan(got)) return;
  worst.add(std::abs(expected - got), fmt::format("{}: expected {}, got {}", name, expected, got));
}

// Infinite where it was not evaluated.
double value_of(const EvaluationResult& result, const std::string& name) {
  const auto found = std::find_if(result.values.begin(), result.values.end(),
                                  [&](const MetricValue& value) { return value.name == name; });
  return found == result.values.end() ? kInfinity : found->value;
}

Evaluator make_evaluator(const MetricGolden& golden) {
  std::vector<std::unique_ptr<Metric>> metrics;
  metrics.push_back(make_topk_accuracy({golden.top_k}));
  metrics.push_back(make_average_k({golden.average_k, AverageKScore::kRaw, Ties::kKeepAll, "val"}));
  MetricContext context;
  context.train_counts = golden.train_counts;
  return {std::move(metrics), std::move(context)};
}

CheckRow check_set_sizes(const MetricGolden& golden, const EvaluationResult& test) {
  WorstError worst;
  for (const SetSizeHistogram& expected : golden.test_set_sizes) {
    const auto found = std::find_if(test.set_sizes.begin(), test.set_sizes.end(),
                                    [&](const SetSizeHistogram& sizes) { return sizes.metric == expected.metric; });
    const std::vector<int64_t> counts = found == test.set_sizes.end() ? std::vector<int64_t>{} : found->counts;
    for (size_t size = 0; size < expected.counts.size(); ++size) {
      compare(worst, fmt::format("test {} samples with {} classes", expected.metric, size),
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
    compare(worst, names[i], static_cast<double>(golden.class_counts[i]), static_cast<double>(got[i]));
  }
  return worst.row(golden.name, "classes in the test labels", 0);
}

}  // namespace

std::vector<CheckRow> check_metrics(at::Device device, const std::vector<std::filesystem::path>& files,
                                    at::ScalarType dtype) {
  std::vector<CheckRow> rows;
  for (const std::filesystem::path& file : files) {
    const nlohmann::json json = read_json(file);
    std::vector<MetricGolden> cases;
    for (const JsonPlace& place : JsonPlace(json, file)["cases"].elements()) cases.push_back(read_metric_case(place));
    for (const MetricGolden& golden : cases) {
      const SplitScores val{golden.val.scores.to(device, dtype), golden.val.labels.to(device)};
      const SplitScores test{golden.test.scores.to(device, dtype), golden.test.labels.to(device)};
      const Evaluator evaluator = make_evaluator(golden);
      const EvaluationResult val_result = evaluator.evaluate(val);
      const EvaluationResult test_result = evaluator.evaluate(test, &val.scores);
      for (const ExpectedValues& expected : golden.expected) {
        WorstError worst;
        for (const MetricValue& value : expected.val) {
          compare(worst, "val " + value.name, value.value, value_of(val_result, value.name));
        }
        for (const MetricValue& value : expected.test) {
          compare(worst, "test " + value.name, value.value, value_of(test_result, value.name));
        }
        rows.push_back(worst.row(golden.name, expected.what, expected.tolerance));
      }
      rows.push_back(check_set_sizes(golden, test_result));
      rows.push_back(check_class_counts(golden, test));
    }
  }
  return rows;
}

}  // namespace settrain
