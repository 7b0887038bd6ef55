// A table filled with the results of runs, beside the printed numbers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/config/schema.h"
#include "src/core/mean_interval.h"
#include "src/papers/table/table.h"

namespace settrain {

struct TableCell {
  std::string metric;  // "test/top5"
  PrintedCell printed{};
  std::optional<double> printed_value{}, printed_spread{};  // as fractions, or in seconds
  std::vector<int64_t> seeds{};                             // of the runs that are there
  std::vector<double> values{};                             // of each; fractions, or seconds
  std::optional<MeanInterval> ours{};                       // over them
  std::vector<MeanInterval> groups{};
  std::optional<MeanInterval> size{};     // of average-K's sets
  std::optional<MeanInterval> against{};  // minus the column that the table compares with, by seed
  std::string word{};                     // in place of a value: "stable"

  /// Our mean minus the printed number; nothing where one of them is not defined.
  std::optional<double> difference() const;

  /// Whether the printed number lies outside our interval; never with fewer than three seeds.
  bool is_outside() const;
};

struct FilledPart {
  const TablePart* part = nullptr;
  std::vector<size_t> columns{};                // places in the table's columns: those that the part has
  std::vector<std::vector<TableCell>> cells{};  // [rows of the part][columns of the part]
};

struct FilledTable {
  const Table* table = nullptr;
  std::vector<FilledPart> parts{};
  int64_t wanted = 0, found = 0;       // runs
  std::vector<std::string> remarks{};  // runs that are not in it, and why
  std::string measured_on{};           // the device of a measured table
};

/// The columns that a part has: where it prints something, those with a cell.
std::vector<size_t> columns_of(const Table& table, const TablePart& part);

/// A printed number in the unit of our values: fractions for accuracies.
double printed_in_our_unit(double printed, PrintedUnit unit);

/// Fills the table from finished runs, each in the cells whose config it has. `of_table_only`: seeds that the table
/// does not name are left out. Runs that belong to no cell, cannot be read, have no results or not the metric, or
/// repeat a seed, are remarks. Throws ConfigError where a cell's config is none.
FilledTable collect_runs(const Table& table, const config::Schema& schema,
                         const std::vector<std::filesystem::path>& runs, bool of_table_only);

}  // namespace settrain
