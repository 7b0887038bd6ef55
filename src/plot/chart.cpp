#include "src/plot/chart.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "src/core/error.h"

namespace settrain {
namespace {

void check_name(const std::string& name) {
  const auto is_plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
           c == '.';
  };
  if (name.empty() || !std::all_of(name.begin(), name.end(), is_plain) || name.front() == '-' || name.front() == '.') {
    throw Error(fmt::format("a chart cannot be called '{}': letters, digits, _, and after the first - and .", name));
  }
}

void check_axis(const ChartAxis& axis, const std::string& where) {
  std::set<std::string> names;
  for (const std::string& name : axis.categories) {
    if (!names.insert(chart_cell(name)).second)
      throw Error(fmt::format("{}: two categories are called '{}'", where, name));
  }
  if (!axis.categories.empty()) return;
  for (const std::optional<double>& end : {axis.least, axis.most}) {
    if (!end) continue;
    if (!std::isfinite(*end)) throw Error(fmt::format("{}: an axis cannot end at {}", where, *end));
    if (axis.is_log && *end <= 0) throw Error(fmt::format("{}: a logarithmic axis cannot end at {}", where, *end));
  }
  if (axis.least && axis.most && *axis.least >= *axis.most) {
    throw Error(fmt::format("{}: an axis cannot reach from {} to {}", where, *axis.least, *axis.most));
  }
}

void check_coordinate(const ChartAxis& axis, double value, const std::string& where) {
  if (!axis.categories.empty()) {
    if (value < 0 || value >= static_cast<double>(axis.categories.size()) || value != std::floor(value)) {
      throw Error(fmt::format("{}: {} is none of {} categories", where, value, axis.categories.size()));
    }
  } else if (axis.is_log && value <= 0) {
    throw Error(fmt::format("{}: {} has no place on a logarithmic axis", where, value));
  }
}

void check_points(const ChartPanel& panel, const ChartSeries& series, const std::string& where) {
  for (const ChartPoint& point : series.points) {
    // With categories x stands for a name in the table, whether the point is drawn or not.
    if (is_drawn(point) || !panel.x.categories.empty()) check_coordinate(panel.x, point.x, where + ", x");
    const bool is_foot = panel.kind == ChartKind::kSteps && point.y == 0;
    if (is_drawn(point) && !is_foot) check_coordinate(panel.y, point.y, where + ", y");
  }
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

void check_chart(const Chart& chart) {
  check_name(chart.name);
  if (chart.panels.empty()) throw Error(fmt::format("chart {} has no panel", chart.name));
  for (size_t i = 0; i < chart.panels.size(); ++i) {
    const ChartPanel& panel = chart.panels[i];
    const std::string where = fmt::format("chart {}, panel {}", chart.name, i + 1);
    check_axis(panel.x, where + ", x");
    check_axis(panel.y, where + ", y");
    std::set<std::string> names;
    for (const ChartSeries& series : panel.series) {
      if (!names.insert(chart_cell(series.name)).second) {
        throw Error(fmt::format("{}: two series are called '{}'", where, series.name));
      }
      check_points(panel, series, fmt::format("{}, series '{}'", where, series.name));
    }
  }
}

}  // namespace settrain
