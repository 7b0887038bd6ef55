// Which runs belong to which cells of a design.
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

/// Sorts them, each once.
void tidy_remarks(std::vector<std::string>& remarks);

}  // namespace settrain
