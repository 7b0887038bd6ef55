// Where the parts of a chart lie.
#pragma once

#include <string>
#include <vector>

#include "src/plot/chart.h"
#include "src/plot/chart_axis.h"
#include "src/plot/chart_legend.h"

namespace settrain {

/// A panel's axes and what is around them. Pixels from the left and from above.
struct PanelLayout {
  ChartScale x, y;
  std::vector<std::string> title, x_label, y_label;  // lines
  bool is_rotated = false;                           // the names of categories below the x axis
  double left = 0, right = 0, top = 0, bottom = 0;   // the axes
  double numbers_left = 0, names_bottom = 0;         // where what stands at their ticks ends, and their labels begin
  ChartLegend legend;
};

/// All of a chart, in pixels. Text is in lines that fit.
struct ChartLayout {
  double width = 0, height = 0;
  std::vector<std::string> title, subtitle;
  std::vector<PanelLayout> panels;

  /// Pixels from the left and from above as gnuplot has them: shares of the picture, from its lower left.
  double across(double pixels) const { return pixels / width; }
  double up(double pixels) const { return 1 - pixels / height; }
  std::string at(double right, double down) const;
};

/// A chart's layout. Panels lie in a row and are equally high; where all are of one kind and their series have the same
/// names, they share the first one's legend. The picture grows with the number of panels and with long names.
ChartLayout chart_layout(const Chart& chart);

/// The angle of rotated names, in degrees.
constexpr double kNameAngle = 40;

/// Pixels from a line of text to the next: in the title, in most text, in the subtitle.
constexpr double kLargeLine = 20, kLine = 16, kSmallLine = 14;

/// Pixels around all, and between things.
constexpr double kEdge = 10, kGap = 8;

}  // namespace settrain
