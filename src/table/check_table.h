// Whether a table's runs will have what it shows.
#pragma once

#include "src/config/schema.h"
#include "src/table/table.h"

namespace settrain {

/// Every metric of a wanted cell is measured by the cell's own config, on a split that it evaluates. Throws ConfigError
/// that names the table's file, the row and the column.
void check_table(const Table& table, const config::Schema& schema);

}  // namespace settrain
