// From runs' folders to charts.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "src/config/schema.h"
#include "src/papers/figure/paper_figure.h"
#include "src/plot/chart.h"

namespace settrain {

struct FilledFigure {
  std::vector<Chart> charts{};         // one for each of the figure's numbers
  int64_t wanted = 0, found = 0;       // runs
  std::vector<std::string> remarks{};  // runs that are not in it, and why
};

/// Draws a figure's points from finished runs: means over seeds, with 95 % intervals (Student's t) from three seeds on;
/// in percent where the metric is a fraction. Without an interval: set sizes, where the sets of all seeds are counted
/// together, and the metric along x. `of_figure_only`: seeds that the figure does not name are left out. Remarks as of
/// find_cell_runs(), and runs without the number. Throws ConfigError where a cell's config is none.
FilledFigure collect_figure(const PaperFigure& figure, const config::Schema& schema,
                            const std::vector<std::filesystem::path>& runs, bool of_figure_only);

}  // namespace settrain
