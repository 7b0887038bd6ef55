#include <fmt/format.h>

#include <cmath>
#include <string>

#include "src/core/table_text.h"
#include "src/plot/chart.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

std::string place(const ChartAxis& axis, double x) {
  return axis.categories.empty() ? number(x) : one_line(axis.categories[static_cast<size_t>(x)]);
}

}  // namespace

std::string chart_cell(const std::string& text) {
  return csv_cell(one_line(text));
}

std::string chart_csv(const Chart& chart) {
  check_chart(chart);
  std::string text = "panel,series,x,y,below,above,label\n";
  for (size_t i = 0; i < chart.panels.size(); ++i) {
    for (const ChartSeries& series : chart.panels[i].series) {
      for (const ChartPoint& point : series.points) {
        text += csv_row({std::to_string(i + 1), one_line(series.name), place(chart.panels[i].x, point.x),
                         number(point.y), number(point.below), number(point.above), one_line(point.label)});
      }
    }
  }
  return text;
}

}  // namespace settrain
