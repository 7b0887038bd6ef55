#include "src/papers/level_sets/level_set_data.h"

#include <fmt/format.h>

#include <iterator>

namespace settrain {

std::string level_set_data(const LevelSetFigure& figure, const PlaneGrid& grid,
                           const std::vector<LevelSetValues>& values) {
  std::string text = "# " + figure.title + ". Level sets of losses; a block a panel.\n";
  const auto out = std::back_inserter(text);
  for (size_t panel = 0; panel < values.size(); ++panel) {
    fmt::format_to(out, "{}# {} {}\n# x y s_1 s_y s_3 loss level\n", panel == 0 ? "" : "\n\n",
                   figure.panels[panel].loss, figure.panels[panel].parameters());
    for (int64_t row = 0; row < grid.rows; ++row) {
      if (row > 0) text += '\n';
      for (int64_t column = 0; column < grid.columns; ++column) {
        const PlanePoint at = grid.at(column, row);
        const PlaneScores s = plane_scores(at);
        const double loss = values[panel].losses[static_cast<size_t>(row * grid.columns + column)];
        fmt::format_to(out, "{:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g} {:.6g}\n", at.x, at.y, s[0], s[kPlaneLabel],
                       s[2], loss, values[panel].rescaled(loss));
      }
    }
  }
  return text;
}

}  // namespace settrain
