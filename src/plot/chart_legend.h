// The names of a chart's series.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "src/plot/chart.h"

namespace settrain {

/// Names row by row, each behind a piece of its series' line. Pixels.
struct ChartLegend {
  size_t rows = 0;                // 0: none
  std::vector<double> columns{};  // their left ends, from the left
  double top = 0;                 // from above
};

/// From a row to the next; of the piece of a line, and from it to the name.
constexpr double kLegendLine = 18, kLegendSample = 32, kLegendGap = 8;

/// Those that are not empty, in order.
std::vector<std::string> series_names(const ChartPanel& panel);

/// A legend in the middle between `left` and `right`, in as few rows as there is room for; `top` is left open.
ChartLegend legend_of(const std::vector<std::string>& names, double left, double right);

/// The room that it takes at least: with a row a name.
double legend_width(const std::vector<std::string>& names);

}  // namespace settrain
