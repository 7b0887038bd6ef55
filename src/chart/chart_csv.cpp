#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cmath>

#include "src/chart/chart.h"
#include "src/figure/pictures.h"

namespace settrain {
namespace {

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

std::string place(const ChartAxis& axis, double x) {
  return axis.categories.empty() ? number(x) : chart_cell(axis.categories[static_cast<size_t>(x)]);
}

}  // namespace

std::string chart_cell(const std::string& text) {
  std::string line = one_line(text);
  if (line.find_first_of(",\"") == std::string::npos) return line;
  std::string quoted = "\"";
  for (const char c : line) quoted += c == '"' ? std::string("\"\"") : std::string(1, c);
  return quoted + '"';
}

std::string chart_csv(const Chart& chart) {
  check_chart(chart);
  std::string text = "panel,series,x,y,below,above,label\n";
  for (size_t i = 0; i < chart.panels.size(); ++i) {
    for (const ChartSeries& series : chart.panels[i].series) {
      const std::string start = fmt::format("{},{},", i + 1, chart_cell(series.name));
      for (const ChartPoint& point : series.points) {
        const std::array cells{place(chart.panels[i].x, point.x), number(point.y), number(point.below),
                               number(point.above), chart_cell(point.label)};
        text += fmt::format("{}{}\n", start, fmt::join(cells, ","));
      }
    }
  }
  return text;
}

}  // namespace settrain
