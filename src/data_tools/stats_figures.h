// Statistics of a data set as charts.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "src/data_tools/stats.h"
#include "src/plot/chart.h"

namespace settrain {

/// The Lorenz curves, in percent, of images by class, each with its name and its Gini coefficient in the legend, beside
/// that of classes of equal size.
ChartPanel lorenz_panel(const std::vector<std::pair<std::string, std::vector<int64_t>>>& counts);

/// `lorenz`, the Lorenz curves of the splits; `class_counts`, images a class from the most to the fewest. See
/// docs/figures.md.
Chart lorenz_chart(const DataStats& stats);
Chart class_counts_chart(const DataStats& stats);

}  // namespace settrain
