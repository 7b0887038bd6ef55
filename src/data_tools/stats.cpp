#include "src/data_tools/stats.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "datasets/decoding/decode_image.h"
#include "datasets/decoding/image_header.h"
#include "datasets/image_files.h"
#include "metrics/shot_group.h"
#include "src/core/interrupt.h"
#include "src/core/ordered_prefetch.h"

namespace settrain {
namespace {

// Reads the headers on `workers` threads; takes height and width of `dataset` where the images are no files. Throws
// Interrupted after a signal.
ImageSizes image_sizes(const Dataset& dataset, const Split& split, int64_t workers, ProgressBar& bar) {
  ImageSizes sizes;
  if (split.size() == 0) return sizes;
  const auto sample_file = [&split](int64_t sample) {
    return file_of(*split.images, split.ids[static_cast<size_t>(sample)]);
  };
  if (sample_file(0).empty()) {
    sizes.height = summarise({static_cast<double>(dataset.height)});
    sizes.width = summarise({static_cast<double>(dataset.width)});
    sizes.aspect = summarise({static_cast<double>(dataset.width) / static_cast<double>(dataset.height)});
    return sizes;
  }

  sizes.files = true;
  std::vector<double> heights, widths, aspects;
  std::map<ImageFormat, int64_t> formats;
  constexpr int64_t kAhead = 16;
  OrderedPrefetch<std::optional<ImageHeader>> headers(0, split.size(), workers, workers * kAhead, [&](int64_t sample) {
    return read_image_header(sample_file(sample));
  });
  int64_t done = 0;
  while (const auto header = headers.next()) {
    throw_if_interrupted();
    bar.update(
        {.stage = "[data] sizes of " + split.name, .done = ++done, .total = split.size(), .after = 0, .figures = ""});
    if (!*header) {
      ++sizes.without_size;
      continue;
    }
    const auto& [format, height, width, orientation] = **header;
    ++formats[format];
    sizes.rotated += orientation != 1;
    if (height == 0) {
      ++sizes.without_size;
      continue;
    }
    heights.push_back(static_cast<double>(height));
    widths.push_back(static_cast<double>(width));
    aspects.push_back(static_cast<double>(width) / static_cast<double>(height));
    sizes.too_large += height > kMostPixels / width;
  }
  for (const auto& [format, images] : formats) sizes.formats.push_back({std::string(name_of(format)), images});
  sizes.height = summarise(std::move(heights));
  sizes.width = summarise(std::move(widths));
  sizes.aspect = summarise(std::move(aspects));
  return sizes;
}

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

// The most first; of equal counts the first in the alphabet.
std::vector<std::pair<std::string, int64_t>> by_count(const std::map<std::string, int64_t>& counts) {
  std::vector<std::pair<std::string, int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::stable_sort(sorted, std::greater(), [](const auto& count) { return count.second; });
  return sorted;
}

RecordCounts record_counts(const Split& split, const ImageRecords& records) {
  RecordCounts counts;
  std::map<std::string, int64_t> organs, licences;
  std::set<std::string> authors, observations;
  for (const int64_t id : split.ids) {
    const ImageRecord* record = records.of(*split.images, id);
    if (!record) {
      ++counts.without;
      continue;
    }
    if (!record->organ.empty()) ++organs[record->organ];
    if (!record->licence.empty()) ++licences[record->licence];
    if (!record->author.empty()) authors.insert(record->author);
    if (!record->observation.empty()) observations.insert(record->observation);
  }
  counts.organs = by_count(organs);
  counts.licences = by_count(licences);
  counts.authors = std::ssize(authors);
  counts.observations = std::ssize(observations);
  return counts;
}

}  // namespace

Summary summarise(std::vector<double> values) {
  if (values.empty()) return {};
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {values.front(), (values[(n - 1) / 2] + values[n / 2]) / 2, sum / static_cast<double>(n), values.back()};
}

std::vector<NoiseCell> noise_matrix(const std::vector<int64_t>& clean, const std::vector<int64_t>& trained) {
  if (clean.size() != trained.size()) throw std::invalid_argument("noise_matrix: as many clean as trained labels");
  std::map<std::pair<int64_t, int64_t>, int64_t> counts;
  for (size_t i = 0; i < clean.size(); ++i) ++counts[{clean[i], trained[i]}];
  std::vector<NoiseCell> cells;
  for (const auto& [classes, count] : counts) cells.push_back({classes.first, classes.second, count});
  return cells;
}

std::vector<NoiseCell> largest_confusions(std::vector<NoiseCell> cells, size_t most) {
  std::erase_if(cells, [](const NoiseCell& cell) { return cell.truth == cell.given; });
  std::stable_sort(cells.begin(), cells.end(), [](const auto& a, const auto& b) { return a.count > b.count; });
  if (cells.size() > most) cells.resize(most);
  return cells;
}

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

void count_records(const ImageRecords& records, const Dataset& dataset, DataStats& stats) {
  if (records.empty()) return;
  for (SplitStats& split : stats.splits) split.records = record_counts(split_named(dataset, split.name), records);
}

std::vector<double> lorenz_curve(std::vector<int64_t> counts) {
  std::sort(counts.begin(), counts.end());
  if (std::all_of(counts.begin(), counts.end(), [](int64_t count) { return count == 0; })) {
    std::fill(counts.begin(), counts.end(), 1);
  }
  const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::vector<double> curve{0.0};
  int64_t sum = 0;
  for (const int64_t count : counts) {
    sum += count;
    curve.push_back(static_cast<double>(sum) / all);
  }
  return curve;
}

double gini(std::vector<int64_t> counts) {
  std::sort(counts.begin(), counts.end());
  const auto n = static_cast<int64_t>(counts.size());
  int64_t weighted = 0, sum = 0;
  for (int64_t i = 1; i <= n; ++i) {
    const int64_t count = counts[static_cast<size_t>(i - 1)];
    weighted += (2 * i - n - 1) * count;
    sum += count;
  }
  return sum == 0 ? 0.0 : static_cast<double>(weighted) / (static_cast<double>(n) * static_cast<double>(sum));
}

double share_of_largest(std::vector<int64_t> counts, double share) {
  const auto classes = static_cast<double>(counts.size());
  const std::vector<double> curve = lorenz_curve(std::move(counts));
  const double place = (1 - share) * classes;
  // (1 - 0.2) * 5 counts as 4 whatever its last bit: a place very near a point is the point.
  const double nearest = std::round(place);
  const double at = std::abs(place - nearest) < 1e-9 * (1 + classes) ? nearest : place;
  const auto before = static_cast<size_t>(std::clamp(std::floor(at), 0.0, classes));
  if (before + 1 >= curve.size()) return 1 - curve.back();
  const double between = at - static_cast<double>(before);
  return 1 - ((1 - between) * curve[before] + between * curve[before + 1]);
}

}  // namespace settrain
