// Which losses, with which parameters, each figure shows.
#pragma once

#include <string>
#include <vector>

#include "src/papers/level_sets/level_sets.h"

namespace settrain {

/// Panels in rows and columns, a row after the other.
struct LevelSetFigure {
  std::string number;  // of the figure in ICML 2022
  std::string name;    // of the files: "level-sets-k2"
  std::string title;
  size_t columns;
  std::vector<LevelSetPanel> panels;
  int64_t replications;  // of the noised losses, where nothing else is asked for

  size_t rows() const { return panels.size() / columns; }
};

/// Figures 1 (K = 2), 4 (draws), 5 (epsilon) and 6 (K = 1) of Garcin et al., ICML 2022.
std::vector<LevelSetFigure> level_set_figures();

}  // namespace settrain
