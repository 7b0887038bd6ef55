#include "src/plot/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "src/core/table_text.h"
#include "src/plot/picture_text.h"

namespace settrain {
namespace {

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

}  // namespace

bool is_drawn(const ChartPoint& point) {
  return std::isfinite(point.x) && std::isfinite(point.y);
}

bool has_points(const ChartPanel& panel) {
  return std::any_of(panel.series.begin(), panel.series.end(), [](const ChartSeries& series) {
    return std::any_of(series.points.begin(), series.points.end(), is_drawn);
  });
}

std::string chart_csv(const Chart& chart) {
  std::string text = "panel,series,x,y,below,above,label\n";
  for (size_t i = 0; i < chart.panels.size(); ++i) {
    const ChartPanel& panel = chart.panels[i];
    for (const ChartSeries& series : panel.series) {
      for (const ChartPoint& point : series.points) {
        const bool has_name = !panel.categories.empty();
        text += csv_row({std::to_string(i + 1), one_line(series.name),
                         has_name ? one_line(panel.categories.at(static_cast<size_t>(point.x))) : number(point.x),
                         number(point.y), number(point.below), number(point.above), one_line(point.label)});
      }
    }
  }
  return text;
}

}  // namespace settrain
