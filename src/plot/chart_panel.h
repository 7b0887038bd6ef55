// A panel of a chart: its axes and the labels of its points.
#pragma once

#include <string>

#include "src/plot/chart.h"

namespace settrain {

/// Pixels that a panel has across, that its axes have of them, and that a character of the text takes.
constexpr double kPanelWidth = 560, kAxesWidth = 460, kAxesHeight = 310, kCharacter = 7.3;

/// The ends of an axis, least < most: those that are given, or a little beyond points and intervals. Of steps, y
/// reaches down to 0 unless it is logarithmic.
struct ChartRange {
  double least, most;
  bool is_log = false;

  /// Where a value lies: 0 at least, 1 at most, beyond them outside.
  double place(double value) const;
};
ChartRange x_range(const ChartPanel& panel);
ChartRange y_range(const ChartPanel& panel);

/// How far right of their x the points of a series are drawn: with categories series stand side by side.
double shift_of(const ChartPanel& panel, size_t series);

/// gnuplot's commands for both axes. The tics are gnuplot's own, but along x the categories, or the places where points
/// of lines and steps stand if these are few, and between powers of ten where an axis has few of them.
std::string axes_commands(const ChartPanel& panel);

/// gnuplot's commands for the labels of points, each on that side of its point where it covers the least of points,
/// intervals and labels before it.
std::string label_commands(const ChartPanel& panel);

}  // namespace settrain
