#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "metrics/shot_group.h"
#include "src/data_tools/stats.h"
#include "src/data_tools/stats_files.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

constexpr size_t kMostClasses = 2000;
constexpr size_t kMostNames = 50;   // along an axis
constexpr size_t kMostSharp = 200;  // a rectangle for each cell; for more classes the file would be large

// Class indices, sorted by superclass.
std::vector<size_t> class_order(const DataStats& stats) {
  std::vector<size_t> order(stats.class_names.size());
  std::iota(order.begin(), order.end(), size_t{0});
  if (!stats.superclass_of.empty()) {
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return stats.superclass_of[a] < stats.superclass_of[b]; });
  }
  return order;
}

// Tics with names for both axes: the classes, or the superclasses where there are too many classes, or none.
std::string name_tics(const DataStats& stats, const std::vector<size_t>& order) {
  std::string tics, lines;
  const auto add = [&](const std::string& name, double at) {
    tics += fmt::format("{}{} {}", tics.empty() ? "" : ", ", tic_string(name), at);
  };
  if (order.size() <= kMostNames) {
    for (size_t i = 0; i < order.size(); ++i) add(stats.class_names[order[i]], static_cast<double>(i));
  }
  double begin = -0.5;
  for (const SuperclassStats& superclass : stats.superclasses) {
    const double end = begin + static_cast<double>(superclass.classes);
    if (order.size() > kMostNames && stats.superclasses.size() <= kMostNames) add(superclass.name, (begin + end) / 2);
    if (stats.superclasses.size() <= kMostNames && end < static_cast<double>(order.size()) - 1) {
      lines += fmt::format(
          "set arrow from first {0},graph 0 to first {0},graph 1 nohead front linewidth 0.4 linecolor '#a0a0a0'\n"
          "set arrow from graph 0,first {0} to graph 1,first {0} nohead front linewidth 0.4 linecolor '#a0a0a0'\n",
          end);
    }
    begin = end;
  }
  if (tics.empty()) return "unset xtics\nunset ytics\n" + lines;
  return fmt::format("set xtics ({0}) rotate by 90 right noenhanced scale 0\nset ytics ({0}) noenhanced scale 0\n{1}",
                     tics, lines);
}

}  // namespace

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
  for (const int64_t bound : {kFewBelow, kManyAbove}) {
    if (bound > most) continue;
    panel.series.push_back(
        {.name = fmt::format("{}, a bound of the shot groups", bound),
         .points = {{.x = 1, .y = static_cast<double>(bound)}, {.x = classes, .y = static_cast<double>(bound)}}});
  }
  return {.name = "class_counts", .title = stats.dataset + ": images a class", .panels = {std::move(panel)}};
}

bool has_noise_figure(const DataStats& stats) {
  return stats.has_noise() && stats.class_names.size() >= 2 && stats.class_names.size() <= kMostClasses;
}

Picture noise_figure(const DataStats& stats) {
  const size_t n = stats.class_names.size();
  const std::vector<size_t> order = class_order(stats);
  std::vector<size_t> place(n);
  for (size_t i = 0; i < n; ++i) place[order[i]] = i;
  std::vector<int64_t> row_sums(n), matrix(n * n);
  for (const NoiseCell& cell : stats.noise_cells) {
    const size_t row = place[static_cast<size_t>(cell.truth)];
    row_sums[row] += cell.count;
    matrix[row * n + place[static_cast<size_t>(cell.given)]] = cell.count;
  }

  double least = 1;
  std::string data =
      "# A row a true class, a column a class trained on: the share of the true class' training images.\n"
      "# The class numbers of rows and columns:";
  for (const size_t c : order) data += fmt::format(" {}", c);
  for (size_t i = 0; i < n * n; ++i) {
    data += i % n == 0 ? '\n' : ' ';
    if (matrix[i] == 0) {
      data += '0';
      continue;
    }
    const double share = static_cast<double>(matrix[i]) / static_cast<double>(row_sums[i / n]);
    least = std::min(least, share);
    data += fmt::format("{:.5g}", share);
  }
  data += '\n';

  const int decades = std::max(1, static_cast<int>(std::ceil(-std::log10(least))));
  Picture picture{.name = "noise_matrix", .title = "Label noise", .width = 900, .height = 860};
  picture.settings = fmt::format(
      R"(set xrange [-0.5:{last}]
set yrange [{last}:-0.5]
set cbrange [{low}:0]
set palette defined ({low} '#ffffff', {low_end} '#ffffff', {low_end} '#e2f1dd', {middle} '#68b3c0', 0 '#1f2355')
set cbtics 1 format '10^{{%.0f}}'
set cblabel 'share of the true class; white: none'
set xlabel 'class trained on'
set ylabel 'true class'
unset key
{tics})",
      fmt::arg("last", static_cast<double>(n) - 0.5), fmt::arg("low", -decades - 0.1),
      fmt::arg("low_end", -decades - 0.02), fmt::arg("middle", -decades / 2.0),
      fmt::arg("tics", name_tics(stats, order)));
  picture.commands = fmt::format(
      "set title {} noenhanced\n"
      "plot 'noise_matrix.dat' matrix using 1:2:($3 > 0 ? log10($3) : {}) with image{}",
      gnuplot_string(fmt::format("{}: label noise {}, {:.2f} % of the labels changed", stats.dataset, stats.noise.kind,
                                 100 * stats.noise.changed_rate)),
      -decades - 1, n <= kMostSharp ? " pixels" : "");
  picture.data = std::move(data);
  return picture;
}

}  // namespace settrain
