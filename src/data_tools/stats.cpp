#include "src/data_tools/stats.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "metrics/shot_group.h"
#include "src/data_tools/lorenz.h"

namespace settrain {
namespace {

std::vector<int64_t> classes_with(const std::vector<int64_t>& counts, int64_t count) {
  std::vector<int64_t> classes;
  for (size_t c = 0; c < counts.size(); ++c) {
    if (counts[c] == count) classes.push_back(static_cast<int64_t>(c));
  }
  return classes;
}

SplitStats split_stats(const Split& split, const std::vector<int64_t>& train_counts) {
  SplitStats stats;
  stats.name = split.name;
  stats.images = split.size();
  stats.counts = count_classes(split, std::ssize(train_counts));
  stats.labels = std::accumulate(stats.counts.begin(), stats.counts.end(), int64_t{0});
  stats.per_class = summarise({stats.counts.begin(), stats.counts.end()});
  stats.missing = classes_with(stats.counts, 0);
  if (!stats.counts.empty()) {
    const auto [least, most] = std::minmax_element(stats.counts.begin(), stats.counts.end());
    stats.fewest = classes_with(stats.counts, *least);
    stats.most = classes_with(stats.counts, *most);
  }
  for (size_t c = 0; c < stats.counts.size(); ++c) {
    ShotCount& group = stats.shots.at(static_cast<size_t>(shot_group(train_counts[c])));
    ++group.classes;
    group.images += stats.counts[c];
  }
  stats.gini = gini(stats.counts);
  stats.largest_fifth = share_of_largest(stats.counts, 0.2);
  return stats;
}

std::vector<SuperclassStats> superclass_stats(const Dataset& dataset, const std::vector<int64_t>& train_counts) {
  std::vector<SuperclassStats> all;
  for (const std::string& name : dataset.superclass_names) all.push_back({name});
  for (size_t c = 0; c < dataset.superclass_of.size(); ++c) {
    SuperclassStats& superclass = all.at(static_cast<size_t>(dataset.superclass_of[c]));
    ++superclass.classes;
    superclass.train_images += train_counts[c];
  }
  return all;
}

}  // namespace

DataStats data_stats(const LoadedData& data, int64_t workers, ProgressOutput output) {
  const Dataset& dataset = data.dataset;
  const std::vector<int64_t> train_counts = count_classes(dataset.train, dataset.num_classes());
  DataStats stats{.dataset = dataset.name,
                  .digest = dataset.digest,
                  .class_names = dataset.class_names,
                  .superclass_of = dataset.superclass_of,
                  .superclasses = superclass_stats(dataset, train_counts),
                  .splits = {},
                  .noise = data.label_noise,
                  .noise_cells = {}};
  ProgressBar bar(std::move(output));
  for (const std::string& name : split_names(dataset)) {
    const Split& split = split_named(dataset, name);
    stats.splits.push_back(split_stats(split, train_counts));
    stats.splits.back().sizes = image_sizes(dataset, split, workers, bar);
  }
  bar.hide();
  if (stats.has_noise()) stats.noise_cells = noise_matrix(data.clean_labels, dataset.train.labels);
  return stats;
}

}  // namespace settrain
