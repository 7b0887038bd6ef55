// From runs' folders to the cells of a table.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/config/schema.h"
#include "src/papers/table/table_result.h"

namespace settrain {

/// Fills the table from finished runs, each in the cells whose config it has. `of_table_only`: seeds that the table
/// does not name are left out. Runs that belong to no cell, cannot be read, have no results or not the metric, or
/// repeat a seed, are remarks. Throws ConfigError where a cell's config is none.
FilledTable collect_runs(const Table& table, const config::Schema& schema,
                         const std::vector<std::filesystem::path>& runs, bool of_table_only);

}  // namespace settrain
