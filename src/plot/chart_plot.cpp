#include "src/plot/chart_plot.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "src/plot/pictures.h"

namespace settrain {
namespace {

// Okabe and Ito's colours, which people who see few colours tell apart, but yellow, which is faint on white. The three
// lengths have no common divisor: many series differ in colour, shape and dashes.
constexpr std::array kColours{"#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000"};
constexpr std::array kShapes{7, 5, 9, 13, 11, 15, 6, 4, 8, 12, 10};
constexpr std::array kDashes{"1", "(12,5)", "(3,4)", "(12,4,3,4)", "(20,5)"};
constexpr size_t kMostPoints = 60,
                 kPointsOfMany = 20;  // along a line: of more than the first, about the second are drawn
constexpr double kMostShift = 0.12;   // of the distance of two categories

constexpr const char* kReading =
    R"(# With " among the separators, gnuplot takes a cell in quotes for a column a pair of quotes, and one more.
set datafile separator ',"'
field(i) = valid(i) ? column(i) : NaN
either(i, other) = valid(i) ? column(i) : column(other)
if_interval(y) = valid(y + 1) || valid(y + 2) ? column(y) : NaN
above(least, value) = value > least ? value : least
# Of numbers in a text that of this row.
of_row(numbers) = real(word(numbers, int(column(0)) + 1)))";

// What gnuplot takes a cell for: see kReading. Without " among the separators, a comma behind a doubled quote would end
// it.
size_t columns_of(const std::string& text) {
  const std::string cell = chart_cell(text);
  const auto quotes = static_cast<size_t>(std::count(cell.begin(), cell.end(), '"'));
  return quotes == 0 ? 1 : quotes / 2 + 1;
}

// A series' rows in the table, and gnuplot's expressions for its columns.
struct Reading {
  std::string rows;            // "data skip 1 every ::3::5"
  std::string x = {}, y = {};  // y: the column's number; those of the interval's ends follow
};

std::string same_or_of_row(const std::vector<size_t>& numbers) {
  const bool same = std::all_of(numbers.begin(), numbers.end(), [&](size_t number) { return number == numbers[0]; });
  return same ? std::to_string(numbers[0]) : fmt::format("int(of_row('{}'))", fmt::join(numbers, " "));
}

Reading reading_of(const ChartPanel& panel, const ChartSeries& series, size_t first_row, double shift) {
  Reading reading{.rows = fmt::format("data skip 1 every ::{}::{}", first_row, first_row + series.points.size() - 1)};
  const size_t x_column = 2 + columns_of(series.name);
  if (panel.x.categories.empty()) {
    reading.x = std::to_string(x_column);
    reading.y = std::to_string(x_column + 1);
    return reading;
  }
  std::vector<double> places;
  std::vector<size_t> y_columns;
  for (const ChartPoint& point : series.points) {
    places.push_back(point.x);
    y_columns.push_back(x_column + columns_of(panel.x.categories[static_cast<size_t>(point.x)]));
  }
  reading.x = fmt::format("(of_row('{}') + {})", fmt::join(places, " "), shift);
  reading.y = same_or_of_row(y_columns);
  return reading;
}

// A single point has no line.
std::string drawn_with(const ChartPanel& panel, size_t series) {
  const auto& points = panel.series[series].points;
  const std::string colour = series_colour(series), line = series_line(series), point = series_point(series);
  if (panel.kind == ChartKind::kPoints || std::count_if(points.begin(), points.end(), is_drawn) == 1) {
    return fmt::format("points {} {}", colour, point);
  }
  if (panel.kind == ChartKind::kSteps) return fmt::format("histeps {} {}", colour, line);
  const size_t interval = points.size() > kMostPoints ? points.size() / kPointsOfMany : 1;
  return fmt::format("linespoints {} {} {} pointinterval {}", colour, line, point, interval);
}

bool has_interval(const ChartPoint& point) {
  return is_drawn(point) && (point.below || point.above);
}

}  // namespace

std::string chart_reading() {
  return kReading;
}

std::vector<double> series_shifts(const ChartPanel& panel) {
  std::vector<double> shifts(panel.series.size());
  if (panel.x.categories.empty() || panel.kind == ChartKind::kSteps || shifts.size() < 2) return shifts;
  const auto last = static_cast<double>(shifts.size() - 1);
  const double step = std::min(kMostShift, 0.6 / last);
  for (size_t i = 0; i < shifts.size(); ++i) shifts[i] = step * (static_cast<double>(i) - last / 2);
  return shifts;
}

std::string series_colour(size_t series) {
  return fmt::format("linecolor '{}'", kColours[series % kColours.size()]);
}

std::string series_line(size_t series) {
  return fmt::format("linewidth 1.8 dashtype {}", kDashes[series % kDashes.size()]);
}

std::string series_point(size_t series) {
  return fmt::format("pointtype {} pointsize 0.85", kShapes[series % kShapes.size()]);
}

std::string chart_plot(const Chart& chart, size_t panel, const ChartScale& y) {
  const ChartPanel& drawn = chart.panels[panel];
  // On a logarithmic axis nothing reaches 0: what would ends below the axis.
  const auto on_axis = [&](const std::string& value) {
    return y.is_log ? fmt::format("above({}, {})", y.least / 2, value) : value;
  };
  size_t row = 0;
  for (size_t i = 0; i < panel; ++i) {
    for (const ChartSeries& series : chart.panels[i].series) row += series.points.size();
  }
  const std::vector<double> shifts = series_shifts(drawn);
  std::vector<std::string> elements, lines;
  for (size_t i = 0; i < drawn.series.size(); row += drawn.series[i++].points.size()) {
    const std::vector<ChartPoint>& points = drawn.series[i].points;
    if (std::none_of(points.begin(), points.end(), is_drawn)) continue;
    const std::string title = "title " + gnuplot_string(drawn.series[i].name);  // an SVG shows it under the pointer
    const Reading reading = reading_of(drawn, drawn.series[i], row, shifts[i]);
    if (std::any_of(points.begin(), points.end(), has_interval)) {
      elements.push_back(
          fmt::format("{0} using {1}:(if_interval({2})):({3}):({4}) with yerrorbars {5} linewidth 1.2 pointtype 0 {6}",
                      reading.rows, reading.x, reading.y, on_axis(fmt::format("either({0} + 1, {0})", reading.y)),
                      on_axis(fmt::format("either({0} + 2, {0})", reading.y)), series_colour(i), title));
    }
    lines.push_back(fmt::format("{} using {}:({}) with {} {}", reading.rows, reading.x,
                                on_axis(fmt::format("field({})", reading.y)), drawn_with(drawn, i), title));
  }
  elements.insert(elements.end(), lines.begin(), lines.end());
  if (elements.empty()) return "plot NaN notitle";
  return fmt::format("plot {}", fmt::join(elements, ", \\\n  "));
}

}  // namespace settrain
