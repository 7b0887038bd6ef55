// Whether a design's runs will have what is shown of them.
#pragma once

#include <vector>

#include "src/config/schema.h"
#include "src/papers/design/run_design.h"

namespace settrain {

/// Every metric and every histogram of a cell is measured by the cell's own config, on a split that it evaluates, and
/// every logged number is one that its epochs have. Throws ConfigError that
/// names the design's file, the row and the column.
void check_cells(const RunDesign& design, const std::vector<WantedCell>& cells, const config::Schema& schema);

}  // namespace settrain
