// A chart: numbers and how to draw them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/plot/pictures.h"

namespace settrain {

/// A point of a series, in the units of its panel's axes.
struct ChartPoint {
  double x = 0, y = 0;                     // where one is not finite, the point is left out of the picture
  std::optional<double> below{}, above{};  // ends of an interval in y, absolute values
  std::string label{};                     // drawn beside the point by kPoints alone
};

/// Points in the order in which lines join them. Where a point is left out the line has a gap.
struct ChartSeries {
  std::string name;  // in the legend, unless empty
  std::vector<ChartPoint> points{};
};

/// An axis. Without `least` or `most` it reaches a little beyond the points and their intervals. Below a logarithmic
/// one lies what is 0 or less: lines, steps and intervals go down to it.
struct ChartAxis {
  std::string label;  // with the unit
  bool is_log = false;
  std::optional<double> least{}, most{};
  std::optional<double> mark{};  // of y: a dashed line across the panel, such as that of a random guess
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
  std::vector<std::string> categories{};  // all different. Where there are any, x is a place 0, 1, ... of this list
};

/// Panels side by side, with one legend: series of one name look the same in all of them.
struct Chart {
  std::string name;  // of the files, "icml2022-2": ASCII letters and digits, _, and, after the first, - and .
  std::string title;
  std::string subtitle{};  // what it was measured on, below the title, of any length
  std::vector<ChartPanel> panels{};
};

/// Whether the point is in the picture: x and y are finite.
bool is_drawn(const ChartPoint& point);

/// Whether any point of the panel is in the picture.
bool has_points(const ChartPanel& panel);

/// The points as a table (RFC 4180, lines end in \n): "panel,series,x,y,below,above,label", a row a point. Panels count
/// from 1; x is the category's name where there are categories; numbers are the shortest that read back the same, cells
/// of those that are missing or not finite are empty. Line breaks and other control characters in texts become blanks,
/// so that a row is a line.
std::string chart_csv(const Chart& chart);

/// The chart as a picture for gnuplot 5.4, with its table as NAME.csv. Names and labels are drawn as they are, whatever
/// they hold.
Picture chart_picture(const Chart& chart);

/// draw_pictures() of the charts.
std::vector<std::filesystem::path> draw_charts(const std::vector<Chart>& charts, const std::filesystem::path& folder);

}  // namespace settrain
