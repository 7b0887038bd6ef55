// What an axis of a chart reaches over.
#pragma once

#include <vector>

#include "src/plot/chart.h"
#include "src/plot/chart_ticks.h"

namespace settrain {

/// An axis with numbers in place of what is left open in ChartAxis.
struct ChartScale {
  double least = 0, most = 1;  // least < most
  bool is_log = false;
  std::vector<ChartTick> ticks{};

  /// Where a value lies: 0 at least, 1 at most, beyond them outside.
  double place(double value) const;
};

/// The panel's axes. Of steps, y reaches down to 0 unless it is logarithmic. Of lines, x has its marks where the points
/// stand, where these are few.
ChartScale x_scale(const ChartPanel& panel);
ChartScale y_scale(const ChartPanel& panel);

}  // namespace settrain
