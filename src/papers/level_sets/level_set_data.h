// The data of a figure, as text.
#pragma once

#include <string>
#include <vector>

#include "src/papers/level_sets/level_set_figures.h"

namespace settrain {

/// What gnuplot reads, panel after panel with two blank lines between: a comment with the loss, then a line a point of
/// the grid, "x y s_1 s_y s_3 loss level", rows parted by blank lines. level is the loss rescaled to [0, 1] over the
/// triangle; loss and level are nan off the triangle.
std::string level_set_data(const LevelSetFigure& figure, const PlaneGrid& grid,
                           const std::vector<LevelSetValues>& values);

}  // namespace settrain
