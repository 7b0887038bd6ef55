// The cells of a design: whether their runs will have what is shown of them, and which runs belong to which cell.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "src/config/schema.h"
#include "src/papers/design/run_design.h"

namespace settrain {

/// Checks that every metric and every histogram of a cell is measured by the cell's own config, on a split that it
/// evaluates, and that every logged number is one that its epochs have. Throws ConfigError that names the design's
/// file, the row and the column.
void check_cells(const RunDesign& design, const std::vector<WantedCell>& cells, const config::Schema& schema);

using RunsBySeed = std::map<int64_t, std::filesystem::path>;

struct CellRuns {
  std::map<std::pair<size_t, size_t>, RunsBySeed> by_cell{};  // by row and column: every wanted cell
  int64_t wanted = 0, found = 0;                              // runs; 0 wanted where any seed is welcome
  std::vector<std::string> remarks{};                         // runs that are not in it, and why
};

/// Finds the cells that finished runs belong to by their configs: seed, compute threads, checkpoints that were kept,
/// metrics that were asked for and the folder of first weights may differ. `of_design_only`: seeds that the design does
/// not name are left out. Of runs of one cell and seed, one that measured more in its steps (train.top_k,
/// train.gradient_nonzeros) is taken, otherwise the first. Runs that belong to no cell, cannot be read, have no
/// results, or repeat a seed, are remarks. Throws ConfigError where a cell's config is none.
CellRuns find_cell_runs(const RunDesign& design, const std::vector<WantedCell>& cells, const config::Schema& schema,
                        const std::vector<std::filesystem::path>& runs, bool of_design_only);

/// Sorts the remarks and leaves each once.
void tidy_remarks(std::vector<std::string>& remarks);

}  // namespace settrain
