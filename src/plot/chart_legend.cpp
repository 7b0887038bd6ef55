#include "src/plot/chart_legend.h"

#include <algorithm>
#include <numeric>

#include "src/plot/text_size.h"

namespace settrain {
namespace {

constexpr double kBetweenNames = 22;  // pixels

double entry_width(const std::string& name) {
  return kLegendSample + kLegendGap + text_width(name, kText) + kBetweenNames;
}

}  // namespace

std::vector<std::string> series_names(const ChartPanel& panel) {
  std::vector<std::string> names;
  for (const ChartSeries& series : panel.series) {
    if (!series.name.empty()) names.push_back(series.name);
  }
  return names;
}

double legend_width(const std::vector<std::string>& names) {
  double widest = 0;
  for (const std::string& name : names) widest = std::max(widest, entry_width(name));
  return widest;
}

ChartLegend legend_of(const std::vector<std::string>& names, double left, double right) {
  ChartLegend legend;
  for (legend.rows = names.empty() ? 0 : 1; legend.rows > 0; ++legend.rows) {
    const size_t columns = (names.size() + legend.rows - 1) / legend.rows;
    std::vector<double> widths(columns);
    for (size_t i = 0; i < names.size(); ++i) {
      widths[i % columns] = std::max(widths[i % columns], entry_width(names[i]));
    }
    const double all = std::accumulate(widths.begin(), widths.end(), -kBetweenNames);
    if (all > right - left && columns > 1) continue;
    double next = (left + right - all) / 2;
    for (const double width : widths) {
      legend.columns.push_back(next);
      next += width;
    }
    break;
  }
  return legend;
}

}  // namespace settrain
