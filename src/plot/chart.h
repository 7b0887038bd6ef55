// A chart: numbers and how to draw them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace settrain {

/// A point of a series, in the units of its panel's axes.
struct ChartPoint {
  double x = 0, y = 0;                     // where one is not finite, the point is left out of the picture
  std::optional<double> below{}, above{};  // ends of an interval in y, absolute values
  std::string label{};                     // drawn beside the point by kPoints alone
};

/// Points in the order in which lines join them. Where a point is left out the line has a gap.
struct ChartSeries {
  std::string name;  // in the legend, unless empty; another one for each series of a panel
  std::vector<ChartPoint> points{};
};

/// An axis. Without `least` or `most` it reaches a little beyond the points and their intervals.
struct ChartAxis {
  std::string label;  // with the unit
  bool is_log = false;
  std::vector<std::string> categories{};  // all different. Where there are any, places are 0, 1, ... of this list
  std::optional<double> least{}, most{};  // with categories these have no meaning
};

/// kLines: lines with points, with some of them where they are many. kPoints: points alone, a label, where there is
/// one, beside each. kSteps: the outline of a histogram, whose bins have their middles at x.
enum class ChartKind { kLines, kPoints, kSteps };

/// One pair of axes. Without any point that can be drawn it is the empty axes with the words "no runs yet".
struct ChartPanel {
  std::string title;
  ChartKind kind = ChartKind::kLines;
  ChartAxis x{}, y{};
  std::vector<ChartSeries> series{};
};

/// Panels side by side.
struct Chart {
  std::string name;  // of the files, "icml2022-2": ASCII letters and digits, _, and, after the first, - and .
  std::string title;
  std::string subtitle{};  // what it was measured on, below the title, of any length
  std::vector<ChartPanel> panels{};
};

/// Whether the point is in the picture: x and y are finite.
bool is_drawn(const ChartPoint& point);

/// Whether any point of the panel is.
bool has_points(const ChartPanel& panel);

/// Throws Error, naming chart, panel and series, where the chart cannot be drawn: a name that is no file's, no panel,
/// series or categories of one name, x that is no category, an axis whose least is not below its most, and a point at 0
/// or below on a logarithmic axis. There steps of the height 0, and intervals that end at 0 or below, go down to the
/// axis.
void check_chart(const Chart& chart);

/// The points as a table (RFC 4180, lines end in \n): "panel,series,x,y,below,above,label", a row a point. Panels count
/// from 1; x is the category's name where there are categories; numbers are the shortest that read back the same, cells
/// of those that are missing or not finite are empty. Line breaks and other control characters in texts become blanks,
/// so that a row is a line. Throws as check_chart().
std::string chart_csv(const Chart& chart);

/// A text as a cell of that table.
std::string chart_cell(const std::string& text);

}  // namespace settrain
