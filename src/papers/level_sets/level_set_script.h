// The script that draws a figure.
#pragma once

#include <string>
#include <vector>

#include "src/papers/level_sets/level_set_figures.h"

namespace settrain {

/// A script for gnuplot 5.4 that reads NAME.dat in its folder and writes NAME.svg and NAME.png there; `gnuplot -e
/// 'out="other"' NAME.gp` writes other.svg and other.png. `noised`: which panels draw random numbers.
std::string level_set_script(const LevelSetFigure& figure, const std::vector<LevelSetValues>& values,
                             const std::vector<bool>& noised, const LevelSetDraws& draws);

}  // namespace settrain
