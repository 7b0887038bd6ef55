// From losses to pictures in a folder.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "src/papers/level_sets/level_set_figures.h"

namespace settrain {

/// What to draw, and where.
struct LevelSetRequest {
  std::filesystem::path folder;
  int64_t size = 101;  // points along a side of the triangle, 3 or more
  uint64_t seed = 0;
  std::optional<int64_t> replications = {};  // in place of each figure's own
};

/// Writes NAME.dat and NAME.gp of every figure to the folder, which is made where it is not there, and then draws
/// NAME.svg and NAME.png with gnuplot. Gives the files' paths. Throws RunError where a file cannot be written; Error,
/// saying that data and scripts are there, where gnuplot is missing or fails. No picture is left half drawn.
std::vector<std::filesystem::path> draw_level_sets(const LossRegistry& registry,
                                                   const std::vector<LevelSetFigure>& figures,
                                                   const LevelSetRequest& request);

}  // namespace settrain
