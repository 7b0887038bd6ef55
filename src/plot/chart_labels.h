// Where the labels of points go, so that they can be read.
#pragma once

#include <string>
#include <vector>

#include "src/plot/chart_layout.h"

namespace settrain {

/// A label of a point, and where from its point it stands, in pixels.
struct PointLabel {
  double x, y;       // the point, in the units of the axes
  double right = 0;  // to the text's beginning where it is above 0, its end where it is below, its middle where it is 0
  double up = 0;     // to the text's middle
  std::string text;
  double line_up = 0;  // where the text is not next to its point: so far up a line from the point to it ends
};

/// The labels of points that lie within the panel's axes, each beside, above or below its point where it covers the
/// least of points, intervals and labels before it, and within the axes where there is room. `shift`: what is added to
/// the x of a series.
std::vector<PointLabel> point_labels(const ChartPanel& panel, const PanelLayout& layout,
                                     const std::vector<double>& shift);

}  // namespace settrain
