// What draws a figure.
#pragma once

#include <vector>

#include "src/papers/level_sets/level_set_figures.h"
#include "src/plot/pictures.h"

namespace settrain {

/// All of the picture but its data, level_set_data(). `noised`: which panels draw random numbers.
Picture level_set_picture(const LevelSetFigure& figure, const std::vector<LevelSetValues>& values,
                          const std::vector<bool>& noised, const LevelSetDraws& draws);

}  // namespace settrain
