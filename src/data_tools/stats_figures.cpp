#include "src/data_tools/stats_figures.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/data_tools/lorenz.h"

namespace settrain {

ChartPanel lorenz_panel(const std::vector<std::pair<std::string, std::vector<int64_t>>>& counts) {
  ChartPanel panel{.title = "",
                   .x = {.label = "Classes, from the fewest images to the most, %", .least = 0, .most = 100},
                   .y = {.label = "Images in them, %", .least = 0, .most = 100}};
  for (const auto& [name, images] : counts) {
    ChartSeries curve{.name = fmt::format("{}, Gini {:.3f}", name, gini(images))};
    const std::vector<double> shares = lorenz_curve(images);
    for (size_t i = 0; i < shares.size(); ++i) {
      curve.points.push_back(
          {.x = 100 * static_cast<double>(i) / static_cast<double>(shares.size() - 1), .y = 100 * shares[i]});
    }
    panel.series.push_back(std::move(curve));
  }
  panel.series.push_back({.name = "classes of equal size", .points = {{.x = 0, .y = 0}, {.x = 100, .y = 100}}});
  return panel;
}

Chart lorenz_chart(const DataStats& stats) {
  std::vector<std::pair<std::string, std::vector<int64_t>>> counts;
  for (const SplitStats& split : stats.splits) {
    if (split.labels > 0) counts.emplace_back(split.name, split.counts);
  }
  return {.name = "lorenz", .title = stats.dataset + ": images by class", .panels = {lorenz_panel(counts)}};
}

Chart class_counts_chart(const DataStats& stats) {
  const auto classes = static_cast<double>(stats.class_names.size());
  ChartPanel panel{.title = "",
                   .kind = ChartKind::kSteps,
                   .x = {.label = "Classes, from the most images to the fewest", .least = 0.5, .most = classes + 0.5},
                   .y = {.label = "Images of the class", .is_log = true}};
  int64_t most = 0;
  for (const SplitStats& split : stats.splits) {
    if (split.labels == 0) continue;
    std::vector<std::pair<int64_t, size_t>> counts;
    for (size_t c = 0; c < split.counts.size(); ++c) counts.emplace_back(-split.counts[c], c);
    std::sort(counts.begin(), counts.end());
    ChartSeries series{.name = split.name};
    for (const auto& [images, c] : counts) {
      const auto place = static_cast<double>(series.points.size() + 1);
      series.points.push_back({.x = place, .y = static_cast<double>(-images), .label = stats.class_names[c]});
    }
    most = std::max(most, -counts.front().first);
    panel.series.push_back(std::move(series));
  }
  for (const int bound : {20, 100}) {
    if (bound > most) continue;
    panel.series.push_back({.name = fmt::format("{}, a bound of the shot groups", bound),
                            .points = {{.x = 1, .y = 1.0 * bound}, {.x = classes, .y = 1.0 * bound}}});
  }
  return {.name = "class_counts", .title = stats.dataset + ": images a class", .panels = {std::move(panel)}};
}

}  // namespace settrain
