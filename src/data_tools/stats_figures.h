// Statistics of a data set as figures. See docs/figures.md.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "src/data_tools/stats.h"
#include "src/plot/chart.h"
#include "src/plot/pictures.h"

namespace settrain {

/// The Lorenz curves of images by class, in percent, and that of classes of equal size. The legend has each curve's
/// name and Gini coefficient.
ChartPanel lorenz_panel(const std::vector<std::pair<std::string, std::vector<int64_t>>>& counts);

/// `lorenz`: the Lorenz curves of the splits. `class_counts`: the images of each class, from the most to the fewest.
Chart lorenz_chart(const DataStats& stats);
Chart class_counts_chart(const DataStats& stats);

/// Whether the noise matrix can be drawn: there is noise, and 2 to 2000 classes, so that each has a pixel or more.
bool has_noise_figure(const DataStats& stats);

/// `noise_matrix`: for every true class, the share of its training images whose label is each class after the noise, on
/// a logarithmic scale. Classes are ordered by superclass, where there are any.
Picture noise_figure(const DataStats& stats);

}  // namespace settrain
