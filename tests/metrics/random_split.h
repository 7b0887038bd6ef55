// Splits to try metrics on.
#pragma once

#include <ATen/ATen.h>

#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "metrics/metric.h"

namespace settrain::test {

/// Standard normal scores, or for `levels` > 0 whole numbers below `levels`, which tie often; labels of the first
/// `label_classes` classes only.
inline SplitScores random_split(uint64_t seed, int64_t samples, int64_t classes, at::ScalarType dtype,
                                int64_t levels = 0, int64_t label_classes = 0) {
  at::manual_seed(seed);
  const auto options = at::TensorOptions(dtype);
  SplitScores split;
  split.scores = levels > 0 ? at::randint(levels, {samples, classes}, options) : at::randn({samples, classes}, options);
  split.labels = at::randint(label_classes > 0 ? label_classes : classes, {samples}, at::kLong);
  return split;
}

inline double value_of(const EvaluationResult& result, const std::string& name) {
  for (const MetricValue& value : result.values) {
    if (value.name == name) return value.value;
  }
  throw std::out_of_range("no value is called " + name);
}

inline std::vector<std::string> names_of(const std::vector<MetricValue>& values) {
  std::vector<std::string> names;
  for (const MetricValue& value : values) names.push_back(value.name);
  return names;
}

/// Everything about the values but their numbers, a text each.
inline std::vector<std::string> facts_of(const std::vector<MetricValue>& values) {
  std::vector<std::string> facts;
  for (const MetricValue& value : values) {
    std::string text = value.name + " " + value.size;
    for (const int fact : {int(value.unit), int(value.over), int(value.better)}) text += " " + std::to_string(fact);
    facts.push_back(std::move(text));
  }
  return facts;
}

}  // namespace settrain::test
