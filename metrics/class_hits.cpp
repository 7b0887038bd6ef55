#include "metrics/class_hits.h"

#include <ATen/ops/bincount.h>

#include <limits>
#include <numeric>

namespace settrain {
namespace {

std::vector<int64_t> count_classes(const at::Tensor& labels, int64_t classes) {
  const at::Tensor counts = at::bincount(labels, {}, classes).cpu();
  return {counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + classes};
}

template <class IsIn>
ClassMean mean_of_classes(const ClassHits& counts, IsIn is_in) {
  double sum = 0;
  int64_t classes = 0;
  for (size_t c = 0; c < counts.total.size(); ++c) {
    if (counts.total[c] == 0 || !is_in(c)) continue;
    sum += static_cast<double>(counts.hits[c]) / static_cast<double>(counts.total[c]);
    ++classes;
  }
  if (classes == 0) return {std::numeric_limits<double>::quiet_NaN(), 0};
  return {sum / static_cast<double>(classes), classes};
}

}  // namespace

ClassHits count_hits(const at::Tensor& in_set, const at::Tensor& labels, int64_t classes) {
  return {count_classes(labels.masked_select(in_set), classes), count_classes(labels, classes)};
}

double accuracy(const ClassHits& counts) {
  const int64_t hits = std::reduce(counts.hits.begin(), counts.hits.end());
  return static_cast<double>(hits) / static_cast<double>(std::reduce(counts.total.begin(), counts.total.end()));
}

ClassMean macro_accuracy(const ClassHits& counts) {
  return mean_of_classes(counts, [](size_t) { return true; });
}

ClassMean shot_accuracy(const ClassHits& counts, const std::vector<int64_t>& train_counts, ShotGroup group) {
  return mean_of_classes(counts, [&](size_t c) { return shot_group(train_counts[c]) == group; });
}

std::vector<std::string> accuracy_names(const std::string& sets, const std::vector<CountBin>& bins) {
  std::vector<std::string> names{sets, "macro_" + sets, "few_" + sets, "medium_" + sets, "many_" + sets};
  for (const CountBin& bin : bins) names.push_back(bin.name + "_" + sets);
  return names;
}

std::vector<MetricValue> accuracies(const std::string& sets, const ClassHits& counts,
                                    const std::vector<int64_t>& train_counts, const std::vector<CountBin>& bins) {
  std::vector<double> values{accuracy(counts), macro_accuracy(counts).mean,
                             shot_accuracy(counts, train_counts, ShotGroup::kFew).mean,
                             shot_accuracy(counts, train_counts, ShotGroup::kMedium).mean,
                             shot_accuracy(counts, train_counts, ShotGroup::kMany).mean};
  for (const CountBin& bin : bins) {
    values.push_back(mean_of_classes(counts, [&](size_t c) { return bin.holds(train_counts[c]); }).mean);
  }
  std::vector<MetricValue> named;
  for (const std::string& name : accuracy_names(sets, bins)) named.push_back({name, values[named.size()]});
  return named;
}

}  // namespace settrain
