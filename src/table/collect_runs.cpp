#include "src/table/collect_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "src/config/format.h"
#include "src/config/load.h"
#include "src/core/digest.h"
#include "src/core/error.h"
#include "src/sweep/sweep_folder.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

using Runs = std::map<int64_t, fs::path>;  // by seed

std::string experiment_of_cell(const Table& table, const config::Schema& schema, size_t row, size_t column) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : table.settings(row, column)) overrides.push_back(fmt::format("{}={}", key, value));
  return experiment_of(config::load(schema, table.base, overrides));
}

// Average-K comes with the size of its sets: "test/avg5_size" of "test/few_avg5".
std::string size_of(const std::string& metric) {
  const size_t sets = metric.find("avg");
  if (sets == std::string::npos) return "";
  return metric.substr(0, metric.find('/') + 1) + metric.substr(sets) + "_size";
}

TableCell fill(const Table& table, const TablePart& part, size_t row, size_t column, const Runs& runs,
               std::vector<std::string>& remarks) {
  TableCell cell;
  cell.metric = table.substitute(part.metric, row, column);
  const std::string select = table.substitute(part.select, row, column), size = size_of(cell.metric);
  std::vector<std::vector<double>> groups(part.groups.size());
  std::vector<double> sizes;
  for (const auto& [seed, folder] : runs) {
    try {
      const PointResult result = read_result(folder, select);
      const auto has = [&result](const std::string& name) {
        return std::any_of(result.metrics.begin(), result.metrics.end(),
                           [&](const auto& one) { return one.first == name; });
      };
      if (!has(cell.metric)) {
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

// By the seeds that both have.
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

std::string experiment_of(const config::Config& config) {
  static const std::set<std::string> kApart{"name",        "seed",       "select",         "run.dir",
                                            "run.threads", "eval.top_k", "eval.average_k", "eval.count_bins",
                                            "eval.splits"};
  std::string text;
  for (const config::Entry& entry : config.entries()) {
    if (entry.key.is_free || kApart.contains(entry.path)) continue;
    // Where the file of first weights lies does not matter.
    const bool is_file = entry.path == "model.pretrained";
    text += fmt::format("{}: {}\n", entry.path,
                        is_file ? fs::path(config.get<std::string>(entry.path)).filename().string()
                                : config::yaml_value(entry.key, entry.value));
  }
  return sha256(text);
}

FilledTable collect_runs(const Table& table, const config::Schema& schema, const std::vector<fs::path>& runs,
                         bool of_table_only) {
  FilledTable filled{.table = &table};
  std::map<std::string, Runs> there;                             // by experiment
  std::map<std::pair<size_t, size_t>, std::string> experiments;  // of the wanted cells, by row and column
  for (size_t row = 0; row < table.rows.each.size(); ++row) {
    for (size_t column = 0; column < table.columns.each.size(); ++column) {
      if (!table.is_wanted(row, column)) continue;
      std::string& experiment = experiments[{row, column}];
      experiment = experiment_of_cell(table, schema, row, column);
      there[experiment];
    }
  }
  if (of_table_only) filled.wanted = std::ssize(there) * std::max<int64_t>(1, std::ssize(table.seeds));
  const std::set<std::string> wanted(table.seeds.begin(), table.seeds.end());
  for (const fs::path& folder : runs) {
    std::optional<config::Config> config;
    try {
      config = config::load(schema, folder / "config.yaml", {});
    } catch (const ConfigError& problem) {
      filled.remarks.push_back(problem.what());
      continue;
    }
    const auto seed = config->get<int64_t>("seed");
    const auto cell = there.find(experiment_of(*config));
    if (cell == there.end()) {
      filled.remarks.push_back(fmt::format("{}: its config is that of no cell", folder.string()));
    } else if (of_table_only && !wanted.empty() && !wanted.contains(std::to_string(seed))) {
      continue;
    } else if (!fs::exists(folder / "results.json")) {
      filled.remarks.push_back(fmt::format("{}: has no results yet", folder.string()));
    } else if (!cell->second.emplace(seed, folder).second) {
      filled.remarks.push_back(
          fmt::format("{}: repeats seed {} of {}", folder.string(), seed, cell->second.at(seed).string()));
    } else {
      ++filled.found;
    }
  }
  const auto against = table.columns.find(table.against);
  for (const TablePart& part : table.parts) {
    FilledPart made{.part = &part, .columns = columns_of(table, part)};
    for (const size_t row : part.rows) {
      std::vector<TableCell> cells(made.columns.size());
      const TableCell* other = nullptr;
      for (size_t i = 0; i < cells.size(); ++i) {
        const size_t column = made.columns[i];
        if (!part.printed.empty() && part.printed_at(row, column).is_absent()) continue;
        const Runs& found = there.at(experiments.at({row, column}));
        cells[i] = fill(table, part, row, column, found, filled.remarks);
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
  std::sort(filled.remarks.begin(), filled.remarks.end());
  filled.remarks.erase(std::unique(filled.remarks.begin(), filled.remarks.end()), filled.remarks.end());
  return filled;
}

}  // namespace settrain
