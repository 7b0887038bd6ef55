// From runs' folders to the cells of a table.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "src/config/schema.h"
#include "src/table/table_result.h"

namespace settrain {

/// The digest of what a run was trained and tested with, seed, compute threads, checkpoints that were kept, metrics
/// that were asked for and the folder of its first weights apart: runs of one cell have it in common.
std::string experiment_of(const config::Config& config);

/// Fills the table from finished runs, each in the cells whose config it has. `of_table_only`: seeds that the table
/// does not name are left out. Runs that belong to no cell, cannot be read, have no results or not the metric, or
/// repeat a seed, are remarks. Throws ConfigError where a cell's config is none.
FilledTable collect_runs(const Table& table, const config::Schema& schema,
                         const std::vector<std::filesystem::path>& runs, bool of_table_only);

}  // namespace settrain
