#include "src/measure/check/metric_golden.h"

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <limits>

#include "metrics/class_hits.h"
#include "metrics/entries.h"
#include "src/measure/check/json_place.h"
#include "src/measure/check/tolerance.h"

namespace settrain {
namespace {

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

/// The values of accuracy_names(), without the first, from a macro average and an object of shot groups.
void add_class_means(std::vector<MetricValue>& values, const std::string& sets, const JsonPlace& macro,
                     const JsonPlace& groups) {
  const std::vector<std::string> names = accuracy_names(sets, {});
  values.push_back({names[1], macro.real()});
  values.push_back({names[2], real_or_undefined(groups["few"])});
  values.push_back({names[3], real_or_undefined(groups["medium"])});
  values.push_back({names[4], real_or_undefined(groups["many"])});
}

MetricGolden read_metric_case(const JsonPlace& place) {
  const int64_t classes = place["num_classes"].integer(1, kAnyCount);
  MetricGolden golden;
  golden.name = place["name"].text();
  golden.train_counts = read_counts(place["train_counts"], classes);
  golden.val = read_split(place["val"], classes);
  golden.test = read_split(place["test"], classes);

  const JsonPlace expected = place["expected"];
  ExpectedValues topk{"top-K accuracy", kFractionTolerance, {}, {}},
      topk_means{"top-K accuracy over classes", kFractionTolerance, {}, {}};
  for (const JsonPlace& k : place["k_values"].elements()) {
    golden.top_k.push_back(k.integer(1, kAnyCount));
    const std::string key = std::to_string(golden.top_k.back()), sets = topk_name(golden.top_k.back());
    topk.test.push_back({sets, expected["topk_accuracy"][key].real()});
    add_class_means(topk_means.test, sets, expected["macro_topk_accuracy"][key], expected["shot_topk_accuracy"][key]);
  }

  ExpectedValues lambda{"average-K threshold", kThresholdTolerance, {}, {}},
      accuracy{"average-K accuracy", kFractionTolerance, {}, {}},
      means{"average-K accuracy over classes", kFractionTolerance, {}, {}},
      size{"mean set size", kFractionTolerance, {}, {}};
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

}  // namespace

std::vector<MetricGolden> read_metric_golden(const std::filesystem::path& file) {
  const nlohmann::json json = read_json(file);
  std::vector<MetricGolden> cases;
  for (const JsonPlace& place : JsonPlace(json, file)["cases"].elements()) cases.push_back(read_metric_case(place));
  return cases;
}

}  // namespace settrain
