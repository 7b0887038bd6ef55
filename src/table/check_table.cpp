#include "src/table/check_table.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "src/config/load.h"
#include "src/core/error.h"

namespace settrain {
namespace {

using Names = std::vector<std::string>;

// What all parts show of a cell.
Names metrics_of(const Table& table, size_t row, size_t column) {
  std::set<std::string> metrics;
  for (const TablePart& part : table.parts) {
    if (!part.has_row(row)) continue;
    metrics.insert(table.substitute(part.metric, row, column));
    for (const std::string& group : part.groups) metrics.insert(table.substitute(group, row, column));
  }
  return {metrics.begin(), metrics.end()};
}

void check_cell(const Table& table, const config::Schema& schema, size_t row, size_t column) {
  Names overrides, names, splits;
  for (const auto& [key, value] : table.settings(row, column)) overrides.push_back(fmt::format("{}={}", key, value));
  for (const std::string& metric : metrics_of(table, row, column)) {
    const size_t slash = metric.find('/');
    splits.push_back(metric.substr(0, slash));
    // Of the best possible sets, where they are known: "test Bayes/avg2".
    if (splits.back().ends_with(" Bayes")) splits.back().resize(splits.back().size() - 6);
    names.push_back("val" + metric.substr(slash));
  }
  // What can be selected by is what is measured.
  overrides.push_back(fmt::format("select=[{}]", fmt::join(names, ", ")));
  const config::Config config = config::load(schema, table.base, overrides);
  const auto& evaluated = config.get<config::Texts>("eval.splits");
  for (const std::string& split : splits) {
    if (std::find(evaluated.begin(), evaluated.end(), split) == evaluated.end()) {
      throw ConfigError(fmt::format("{} is none of the splits that are evaluated (eval.splits)", split));
    }
  }
}

}  // namespace

void check_table(const Table& table, const config::Schema& schema) {
  for (size_t row = 0; row < table.rows.each.size(); ++row) {
    for (size_t column = 0; column < table.columns.each.size(); ++column) {
      if (!table.is_wanted(row, column)) continue;
      try {
        check_cell(table, schema, row, column);
      } catch (const ConfigError& problem) {
        throw ConfigError(fmt::format("'{}': row {}, column {}: {}", table.file.string(), table.rows.each[row].label,
                                      table.columns.each[column].label, problem.what()));
      }
    }
  }
}

}  // namespace settrain
