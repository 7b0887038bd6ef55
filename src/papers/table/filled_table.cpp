#include "src/papers/table/filled_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "src/core/error.h"
#include "src/core/metric_name.h"
#include "src/papers/design/cells.h"
#include "src/studies/sweep/sweep_folder.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

TableCell fill(const Table& table, const TablePart& part, size_t row, size_t column, const RunsBySeed& runs,
               ImageComparison& images, std::vector<std::string>& remarks) {
  TableCell cell;
  cell.metric = table.substitute(part.metric, row, column);
  const std::string select = table.substitute(part.select, row, column), size = size_metric(cell.metric);
  std::vector<std::vector<double>> groups(part.groups.size());
  std::vector<double> sizes;
  for (const auto& [seed, folder] : runs) {
    try {
      const PointResult result = read_result(folder, select);
      images.add(folder, result);
      if (result.chose_nothing)
        remarks.push_back(fmt::format("{}: {}", folder.string(), chose_nothing_text(select, result)));
      if (std::none_of(result.metrics.begin(), result.metrics.end(),
                       [&cell](const auto& value) { return value.first == cell.metric; })) {
        remarks.push_back(fmt::format("{}: has no {}", folder.string(), cell.metric));
        continue;
      }
      cell.seeds.push_back(seed);
      cell.values.push_back(result.metric(cell.metric));
      for (size_t i = 0; i < groups.size(); ++i) {
        groups[i].push_back(result.metric(table.substitute(part.groups[i], row, column)));
      }
      // The best possible sets come without one.
      if (const double value = result.metric(size); !std::isnan(value)) sizes.push_back(value);
    } catch (const RunError& problem) {
      remarks.push_back(problem.what());
    }
  }
  if (cell.values.empty()) return cell;
  cell.ours = mean_interval(cell.values);
  for (const std::vector<double>& values : groups) cell.groups.push_back(mean_interval(values));
  if (!sizes.empty()) cell.size = mean_interval(sizes);
  return cell;
}

// The paired difference over the seeds that both have.
std::optional<MeanInterval> paired(const TableCell& cell, const TableCell& other) {
  std::vector<double> first, second;
  for (size_t i = 0; i < cell.seeds.size(); ++i) {
    const auto same = std::find(other.seeds.begin(), other.seeds.end(), cell.seeds[i]);
    if (same == other.seeds.end()) continue;
    first.push_back(cell.values[i]);
    second.push_back(other.values[static_cast<size_t>(same - other.seeds.begin())]);
  }
  return first.empty() ? std::nullopt : std::optional(paired_difference(first, second));
}

void add_printed(const TablePart& part, size_t row, size_t column, TableCell& cell) {
  cell.printed = part.printed_at(row, column);
  if (cell.printed.value) cell.printed_value = printed_in_our_unit(*cell.printed.value, part.unit);
  if (cell.printed.spread) cell.printed_spread = printed_in_our_unit(*cell.printed.spread, part.unit);
}

}  // namespace

std::optional<double> TableCell::difference() const {
  if (!ours || std::isnan(ours->mean) || !printed_value) return std::nullopt;
  return ours->mean - *printed_value;
}

bool TableCell::is_outside() const {
  constexpr int64_t kFewestSeeds = 3;
  const auto by = difference();
  return by && ours->count >= kFewestSeeds && std::abs(*by) > ours->half_width;
}

std::vector<size_t> columns_of(const Table& table, const TablePart& part) {
  std::vector<size_t> columns;
  for (size_t column = 0; column < table.columns.each.size(); ++column) {
    const bool is_there = part.printed.empty() || table.measure ||
                          std::any_of(part.printed.begin(), part.printed.end(),
                                      [&](const auto& row) { return !row[column].is_absent(); });
    if (is_there) columns.push_back(column);
  }
  return columns;
}

double printed_in_our_unit(double printed, PrintedUnit unit) {
  return unit == PrintedUnit::kPercent ? printed / 100 : printed;
}

FilledTable collect_runs(const Table& table, const config::Schema& schema, const std::vector<fs::path>& runs,
                         bool of_table_only) {
  CellRuns found = find_cell_runs(table, table.wanted_cells(), schema, runs, of_table_only);
  FilledTable filled{
      .table = &table, .wanted = found.wanted, .found = found.found, .remarks = std::move(found.remarks)};
  const auto against = table.columns.find(table.against);
  ImageComparison images;
  for (const TablePart& part : table.parts) {
    FilledPart made{.part = &part, .columns = columns_of(table, part)};
    for (const size_t row : part.rows) {
      std::vector<TableCell> cells(made.columns.size());
      const TableCell* other = nullptr;
      for (size_t i = 0; i < cells.size(); ++i) {
        const size_t column = made.columns[i];
        if (!part.printed.empty() && part.printed_at(row, column).is_absent()) continue;
        cells[i] = fill(table, part, row, column, found.by_cell.at({row, column}), images, filled.remarks);
        add_printed(part, row, column, cells[i]);
        if (column == against) other = &cells[i];
      }
      for (TableCell& cell : cells) {
        if (other && &cell != other) cell.against = paired(cell, *other);
      }
      made.cells.push_back(std::move(cells));
    }
    filled.parts.push_back(std::move(made));
  }
  filled.remarks.insert(filled.remarks.end(), images.remarks().begin(), images.remarks().end());
  tidy_remarks(filled.remarks);
  return filled;
}

}  // namespace settrain
