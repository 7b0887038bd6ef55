#include "metrics/class_hits.h"

#include <ATen/ops/bincount.h>
#include <fmt/format.h>

#include <limits>
#include <numeric>
#include <utility>

namespace settrain {
namespace {

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

config::Keys CountBinOptions::keys() {
  return {
      config::key("count_bins", &CountBinOptions::count_bins, {},
                  "Ascending bounds of further groups of classes by their training images, for every K of top_k and "
                  "average_k. With [10, 50]: bin0_9_top5, bin10_49_top5 and bin50_top5 (50 and more), means over "
                  "the classes of each.")
          .at_least(1)
          .distinct()
          .in("images")};
}

std::vector<CountBin> CountBinOptions::bins() const {
  std::vector<CountBin> bins;
  int64_t first = 0;
  for (const int64_t bound : count_bins) {
    bins.push_back({fmt::format("bin{}_{}", first, bound - 1), first, bound - 1});
    first = bound;
  }
  if (first > 0) bins.push_back({fmt::format("bin{}", first), first, std::numeric_limits<int64_t>::max()});
  return bins;
}

std::vector<int64_t> counts_of(const at::Tensor& values, int64_t size) {
  const at::Tensor counts = at::bincount(values, {}, size).cpu();
  return {counts.const_data_ptr<int64_t>(), counts.const_data_ptr<int64_t>() + size};
}

double mean_of_counts(const std::vector<int64_t>& counts) {
  int64_t number = 0, sum = 0;
  for (size_t value = 0; value < counts.size(); ++value) {
    number += counts[value];
    sum += counts[value] * static_cast<int64_t>(value);
  }
  return static_cast<double>(sum) / static_cast<double>(number);
}

ClassHits count_hits(const at::Tensor& in_set, const at::Tensor& labels, int64_t classes) {
  return {counts_of(labels.masked_select(in_set), classes), counts_of(labels, classes)};
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

std::vector<MetricValue> accuracies(const std::string& sets, const ClassHits& counts,
                                    const std::vector<int64_t>& train_counts, const std::vector<CountBin>& bins,
                                    const std::string& size) {
  const auto of_classes = [&size](const std::string& name, double value) {
    return MetricValue{.name = name, .value = value, .over = MeanOver::kClasses, .size = size};
  };
  std::vector<MetricValue> values{{.name = sets, .value = accuracy(counts), .size = size}};
  values.push_back(of_classes("macro_" + sets, macro_accuracy(counts).mean));
  for (const auto& [prefix, group] :
       {std::pair("few_", ShotGroup::kFew), {"medium_", ShotGroup::kMedium}, {"many_", ShotGroup::kMany}}) {
    values.push_back(of_classes(prefix + sets, shot_accuracy(counts, train_counts, group).mean));
  }
  for (const CountBin& bin : bins) {
    const ClassMean mean = mean_of_classes(counts, [&](size_t c) { return bin.holds(train_counts[c]); });
    values.push_back(of_classes(bin.name + "_" + sets, mean.mean));
  }
  return values;
}

std::vector<MetricValue> accuracy_facts(const std::string& sets, const std::vector<CountBin>& bins,
                                        const std::string& size) {
  return accuracies(sets, {}, {}, bins, size);
}

}  // namespace settrain
