#include "src/data_tools/stats_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <functional>
#include <utility>

#include "src/data_tools/lorenz.h"

namespace settrain {
namespace {

constexpr std::array kLineStyles{"linewidth 2.5 linecolor '#1f2355'", "linewidth 1.8 linecolor '#c00000'",
                                 "linewidth 1.8 dashtype 2 linecolor '#32a0a0'"};

// The splits that have images, each as one line of a plot; `data` has a block for every split, empty or not.
std::string plot_lines(const DataStats& stats, const std::string& how,
                       const std::function<std::string(const SplitStats&)>& title) {
  std::string text;
  for (size_t i = 0; i < stats.splits.size(); ++i) {
    if (stats.splits[i].labels == 0) continue;
    text += fmt::format("{}data index '{}' {} {} title '{}'", text.empty() ? "" : ", \\\n  ", stats.splits[i].name, how,
                        kLineStyles[i], title(stats.splits[i]));
  }
  return text;
}

}  // namespace

StatsFigure lorenz_figure(const DataStats& stats) {
  std::string data = "# Lorenz curves. A block a split: share of the classes, share of the images in them\n";
  for (const SplitStats& split : stats.splits) {
    data += fmt::format("\n\n# {}\n", split.name);
    const std::vector<double> curve = lorenz_curve(split.counts);
    for (size_t i = 0; i < curve.size(); ++i) {
      data += fmt::format("{:.8g} {:.8g}\n", static_cast<double>(i) / static_cast<double>(curve.size() - 1), curve[i]);
    }
  }
  PictureScript script{.name = "lorenz", .title = "Lorenz curves of the splits", .width = 640, .height = 640};
  script.settings = R"(set size ratio 1
set xrange [0:1]
set yrange [0:1]
set grid linecolor '#d8d8d8'
set key top left Left reverse noenhanced
set xlabel 'share of classes, from the fewest images to the most'
set ylabel 'share of images')";
  script.commands = fmt::format("set title {} noenhanced\n", gnuplot_string(stats.dataset + ": images by class")) +
                    "plot x with lines dashtype 3 linecolor '#808080' title 'equal classes', \\\n  " +
                    plot_lines(stats, "using 1:2 with lines", [](const SplitStats& split) {
                      return fmt::format("{}, Gini {:.3f}", split.name, split.gini);
                    });
  return {std::move(script), std::move(data)};
}

StatsFigure class_counts_figure(const DataStats& stats) {
  std::string data = "# Images a class. A block a split: place, images, class number\n";
  int64_t least = INT64_MAX, most = 1;
  for (const SplitStats& split : stats.splits) {
    data += fmt::format("\n\n# {}\n", split.name);
    std::vector<std::pair<int64_t, size_t>> classes;
    for (size_t c = 0; c < split.counts.size(); ++c) classes.emplace_back(-split.counts[c], c);
    std::sort(classes.begin(), classes.end());
    for (size_t i = 0; i < classes.size(); ++i) {
      const int64_t images = -classes[i].first;
      data += fmt::format("{} {} {}\n", i + 1, images, classes[i].second);
      if (images > 0) least = std::min(least, images);
      most = std::max(most, images);
    }
  }
  // Whole decades, whose ends have tics.
  const double low = std::pow(10, std::floor(std::log10(static_cast<double>(std::min(least, most)))));
  const double high = std::max(std::pow(10, std::ceil(std::log10(static_cast<double>(most)))), 10 * low);
  PictureScript script{.name = "class_counts", .title = "Images a class", .width = 800, .height = 520};
  script.settings = fmt::format(R"(set logscale y
set xrange [0.5:{}]
set yrange [{}:{}]
set grid linecolor '#d8d8d8'
set key top right noenhanced
set xlabel 'classes, from the most images to the fewest'
set ylabel 'images of the class (those without one are left out)')",
                                static_cast<double>(stats.class_names.size()) + 0.5, low * 0.8, high * 1.25);
  for (const int bound : {20, 100}) {  // of the shot groups
    if (low <= bound && bound <= high) {
      script.settings += fmt::format(
          "\nset arrow from graph 0,first {0} to graph 1,first {0} nohead dashtype 3 linecolor '#808080'", bound);
    }
  }
  script.commands =
      fmt::format("set title {} noenhanced\n", gnuplot_string(stats.dataset + ": images a class")) + "plot " +
      plot_lines(stats, "using 1:($2 > 0 ? $2 : NaN) with histeps", [](const SplitStats& split) { return split.name; });
  return {std::move(script), std::move(data)};
}

}  // namespace settrain
