// Statistics of a data set as pictures.
#pragma once

#include <string>
#include <vector>

#include "src/data_tools/stats.h"
#include "src/plot/pictures.h"

namespace settrain {

/// A gnuplot script and the data that it draws.
struct StatsFigure {
  PictureScript script;
  std::string data;
};

/// `lorenz`, the Lorenz curves of the splits; `class_counts`, images a class from the most to the fewest. See
/// docs/figures.md.
StatsFigure lorenz_figure(const DataStats& stats);
StatsFigure class_counts_figure(const DataStats& stats);

}  // namespace settrain
