#include "src/core/metric_name.h"

#include <algorithm>

namespace settrain {
namespace {

constexpr const char* kSparseTop = "sparse_top";

// The place of the slash behind the split; npos where the name has none: a slash behind the @ belongs to a rule's file.
size_t split_end(const std::string& metric) {
  const size_t slash = metric.find('/');
  return slash < metric.find('@') ? slash : std::string::npos;
}

// The split with its slash: "test/" of "test/top5".
std::string place_of(const std::string& metric) {
  return metric.substr(0, split_end(metric) + 1);  // npos + 1 is 0
}

bool is_of_rule(const std::string& metric) {
  return metric.find('@') != std::string::npos;
}

std::string rule_of(const std::string& metric) {
  return metric.substr(metric.find('@') + 1);
}

}  // namespace

std::string split_of_metric(const std::string& metric) {
  const size_t end = split_end(metric);
  return end == std::string::npos ? "" : metric.substr(0, end);
}

std::string name_of_metric(const std::string& metric) {
  return metric.substr(split_end(metric) + 1);
}

std::string size_metric(const std::string& metric) {
  const std::string name = name_of_metric(metric);
  if (is_of_rule(name)) {
    const bool is_coverage = name.starts_with("coverage@") || name.starts_with("macro_coverage@");
    return is_coverage ? place_of(metric) + "size@" + rule_of(name) : "";
  }
  const size_t sets = std::min(name.find("avg"), name.find(kSparseTop));
  if (name == metric || sets == std::string::npos || accuracy_metric(metric) != metric) return "";
  const std::string part = name.starts_with(kSubsetPrefix) ? kSubsetPrefix : "";
  return place_of(metric) + part + judged_by_all_labels(name.substr(sets)) + "_size";
}

std::string accuracy_metric(const std::string& metric) {
  const std::string name = name_of_metric(metric);
  if (name.starts_with("size@")) return place_of(metric) + "coverage@" + rule_of(name);
  if (is_of_rule(name)) return metric;
  if (name == std::string(kSparseTop) + "_size") return place_of(metric) + kSparseTop + "_weight";
  for (const std::string suffix : {"_size", "_lambda"}) {
    if (metric.ends_with(suffix)) return metric.substr(0, metric.size() - suffix.size());
  }
  return metric;
}

std::string judged_by_all_labels(const std::string& metric) {
  for (const std::string suffix : {"_recall", "_micro_f1", "_macro_f1", "_f1", "_weight"}) {
    if (metric.ends_with(suffix)) return metric.substr(0, metric.size() - suffix.size());
  }
  return metric;
}

bool is_size(const std::string& metric) {
  const std::string name = name_of_metric(metric);
  return is_of_rule(name) ? name.starts_with("size@") : name.ends_with("_size");
}

bool is_of_all_samples(const std::string& set_sizes) {
  return set_sizes.starts_with("avg");
}

bool is_better_by_name(const std::string& metric, double value, double other) {
  const std::string name = name_of_metric(metric);
  const bool smaller =
      name.starts_with("size@") || name.starts_with("undercoverage_gap@") || name.starts_with("below_half@");
  return smaller ? value < other : value > other;
}

}  // namespace settrain
