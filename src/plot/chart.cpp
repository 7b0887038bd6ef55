#include "src/plot/chart.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "src/core/table_text.h"
#include "src/core/text.h"
#include "src/plot/chart_panel.h"
#include "src/plot/pictures.h"

namespace settrain {
namespace {

std::string number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{}", *value) : "";
}

constexpr size_t kMarks = 30;                    // about so many points along a line at most
constexpr size_t kMostOfName = 70, kSample = 9;  // characters: of a name in the legend, of the room beside it
constexpr double kMostShift = 0.12;              // of the distance of two categories
constexpr double kOnePanel = 720, kPanelHeight = 420, kEdge = 10;  // pixels
constexpr double kTitleLine = 20, kSubtitleLine = 15, kLegendLine = 20;

// Okabe and Ito's colours, which people who see few colours tell apart, but yellow, which is faint on white. The three
// lengths have no common divisor: many series differ in colour, shape and dashes.
constexpr const char* kStyle = R"(reset
set termoption noenhanced
set encoding utf8
colours = "#0072b2 #d55e00 #009e73 #cc79a7 #e69f00 #56b4e9 #000000"
shapes = "7 5 9 13 11 15 6 4 8 12 10"
set dashtype 2 (12,5)
set dashtype 3 (3,4)
set dashtype 4 (12,4,3,4)
set dashtype 5 (20,5)
do for [i = 1:{names}] {{
set linetype i linecolor rgb word(colours, (i - 1) % 7 + 1) pointtype int(word(shapes, (i - 1) % 11 + 1))
set linetype i linewidth 1.8 pointsize 0.85 dashtype 1 + (i - 1) % 5
}}
set grid linetype -1 linecolor '#e4e4e4' linewidth 0.8
set border 3 linecolor '#505050'
set tics nomirror textcolor '#202020'
set errorbars 0.8 linewidth 1 dashtype 1
set clip two
set key off
height = {height:.1f}
bottom = {bottom:.1f} / height
set multiplot
set label {title} at screen 0.5,1 - 20 / height center font large
set label {subtitle} at screen 0.5,1 - {subtitle_down:.1f} / height center font small textcolor '#505050'
)";

constexpr const char* kPanel = R"(
# Panel {number}
set origin {left:.5f},bottom
set size {width:.5f},1 - bottom - {head:.1f} / height
set title {title}
set xlabel {x_label}
set ylabel {y_label}
{axes}{labels}plot {plots}
unset label
unset arrow
)";

constexpr const char* kLegend = R"(
# The legend
reset
unset border
unset tics
set margins 0,0,0,0
set size 1,bottom
set key on inside center center horizontal Left reverse spacing 1.2 maxcols {}
plot [0:1][0:1] {}
)";

// In lines that fit.
std::string fitted(const std::string& text, double pixels) {
  return wrapped(text, static_cast<size_t>(pixels / kCharacter));
}

double lines_in(const std::string& text) {
  return text.empty() ? 0 : 1 + static_cast<double>(std::count(text.begin(), text.end(), '\n'));
}

// The points of a series: x, y, the ends of the interval or y.
std::string block_of(const ChartPanel& panel, size_t series) {
  const ChartRange range = y_range(panel);
  // A logarithmic axis has no 0: values of 0 or less end below the axis.
  const auto on_axis = [&](double y) { return range.is_log ? std::max(range.least / 2, y) : y; };
  std::string text;
  for (const ChartPoint& point : panel.series[series].points) {
    text += !is_drawn(point)
                ? "NaN NaN NaN NaN\n"
                : fmt::format("{} {} {} {}\n", point.x + shift_of(panel, series), on_axis(point.y),
                              on_axis(point.below.value_or(point.y)), on_axis(point.above.value_or(point.y)));
  }
  return text;
}

// How a series is plotted in a line of the type.
std::string drawn_with(ChartKind kind, const std::vector<ChartPoint>& points, size_t type) {
  const auto drawn = std::count_if(points.begin(), points.end(), is_drawn);
  const bool has_intervals =
      std::any_of(points.begin(), points.end(), [](const ChartPoint& point) { return point.below || point.above; });
  const bool is_line = kind == ChartKind::kLines;
  if (has_intervals) return fmt::format("1:2:3:4 with {} linetype {}", is_line ? "yerrorlines" : "yerrorbars", type);
  if (is_line)
    return fmt::format("1:2 with linespoints linetype {} pointinterval {}", type, 1 + points.size() / kMarks);
  return fmt::format("1:2 with {} linetype {}", kind == ChartKind::kSteps && drawn > 1 ? "histeps" : "points", type);
}

size_t type_of(const ChartSeries& series, const std::vector<std::string>& names) {
  return static_cast<size_t>(std::find(names.begin(), names.end(), series.name) - names.begin()) + 1;
}

// The names in the legend, each once: series of one name look the same in all panels.
std::vector<std::string> names_of(const Chart& chart) {
  std::vector<std::string> names;
  for (const ChartPanel& panel : chart.panels) {
    for (const ChartSeries& series : panel.series) {
      if (type_of(series, names) > names.size()) names.push_back(series.name);
    }
  }
  return names;
}

std::string legend_of(const Chart& chart, const std::vector<std::string>& names, double width, double& height) {
  const ChartKind kind = chart.panels[0].kind;
  const char* how = kind == ChartKind::kLines ? "linespoints" : kind == ChartKind::kPoints ? "points" : "lines";
  std::vector<std::string> entries;
  size_t longest = 0;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    const std::string name = shortened(one_line(names[i]), kMostOfName);
    longest = std::max(longest, count_characters(name));
    entries.push_back(fmt::format("NaN with {} linetype {} title {}", how, i + 1, gnuplot_string(name)));
  }
  if (entries.empty()) return "";
  const size_t columns = std::max<size_t>(1, static_cast<size_t>(width / kCharacter) / (longest + kSample));
  height = kEdge + kLegendLine * static_cast<double>((entries.size() + columns - 1) / columns);
  return fmt::format(fmt::runtime(kLegend), columns, fmt::join(entries, ", \\\n  "));
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

double shift_of(const ChartPanel& panel, size_t series) {
  if (panel.categories.empty() || panel.kind == ChartKind::kSteps || panel.series.size() < 2) return 0;
  const auto last = static_cast<double>(panel.series.size() - 1);
  return std::min(kMostShift, 0.6 / last) * (static_cast<double>(series) - last / 2);
}

Picture chart_picture(const Chart& chart) {
  const auto count = static_cast<double>(chart.panels.size());
  const double width = count == 1 ? kOnePanel : kPanelWidth * count;
  const std::string title = fitted(chart.title, width / 1.3), subtitle = fitted(chart.subtitle, 1.15 * width);
  const double subtitle_down = kEdge + kTitleLine * lines_in(title),
               head = subtitle_down + kSubtitleLine * lines_in(subtitle);
  const std::vector<std::string> names = names_of(chart);
  double bottom = 0;
  const std::string legend = legend_of(chart, names, width, bottom);
  std::string panels, blocks;
  for (size_t i = 0; i < chart.panels.size(); ++i) {
    const ChartPanel& panel = chart.panels[i];
    std::string labels = panel.kind == ChartKind::kPoints ? label_commands(panel) : "";
    if (panel.y.mark) {
      labels += fmt::format(
          "set arrow 1 from graph 0, first {0} to graph 1, first {0} nohead dashtype 2 linecolor '#808080'\n",
          *panel.y.mark);
    }
    std::vector<std::string> plots;
    for (size_t j = 0; j < panel.series.size(); ++j) {
      const ChartSeries& series = panel.series[j];
      if (std::none_of(series.points.begin(), series.points.end(), is_drawn)) continue;
      blocks += fmt::format("$panel{}_{} << END\n{}END\n", i + 1, j + 1, block_of(panel, j));
      plots.push_back(fmt::format("$panel{}_{} using {}", i + 1, j + 1,
                                  drawn_with(panel.kind, series.points, type_of(series, names))));
    }
    if (plots.empty()) {
      plots = {"NaN"};
      labels = "set label 'no runs yet' at graph 0.5,0.5 center textcolor '#808080' font large\n";
    }
    panels += fmt::format(fmt::runtime(kPanel), fmt::arg("number", i + 1),
                          fmt::arg("left", static_cast<double>(i) / count), fmt::arg("width", 1 / count),
                          fmt::arg("head", head), fmt::arg("title", gnuplot_string(fitted(panel.title, kAxesWidth))),
                          fmt::arg("x_label", gnuplot_string(fitted(panel.x.label, kAxesWidth))),
                          fmt::arg("y_label", gnuplot_string(fitted(panel.y.label, kAxesHeight))),
                          fmt::arg("axes", axes_commands(panel)), fmt::arg("labels", labels),
                          fmt::arg("plots", fmt::join(plots, ", \\\n  ")));
  }
  const double height = head + kPanelHeight + bottom;
  const std::string style = fmt::format(
      fmt::runtime(kStyle), fmt::arg("names", names.size()), fmt::arg("height", height), fmt::arg("bottom", bottom),
      fmt::arg("title", gnuplot_string(title)), fmt::arg("subtitle", gnuplot_string(subtitle)),
      fmt::arg("subtitle_down", subtitle_down + kSubtitleLine / 2));
  return {.name = chart.name,
          .title = chart.title,
          .width = static_cast<size_t>(width),
          .height = static_cast<size_t>(height),
          .settings = blocks,
          .commands = style + panels + legend + "unset multiplot",
          .data = chart_csv(chart),
          .ending = ".csv"};
}

std::vector<std::filesystem::path> draw_charts(const std::vector<Chart>& charts, const std::filesystem::path& folder) {
  return draw_pictures(
      charts.size(), [&](size_t i) { return chart_picture(charts[i]); }, folder);
}

}  // namespace settrain
