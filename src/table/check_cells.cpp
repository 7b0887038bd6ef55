#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/table/run_design.h"

namespace settrain {
namespace {

using Names = std::vector<std::string>;

// What an epoch's line has only where it is asked for.
void check_logged(const std::string& metric, const config::Config& config) {
  const auto& top_k = config.get<config::Integers>("train.top_k");
  const auto k = [&](int64_t k) { return metric == fmt::format("train/top{}", k); };
  if (metric.starts_with("train/top") && !k(1) && std::none_of(top_k.begin(), top_k.end(), k)) {
    throw ConfigError(metric + " is not measured: train.top_k says which K there are");
  }
  if (metric == "train/gradient_nonzeros" && !config.get<bool>("train.gradient_nonzeros")) {
    throw ConfigError(metric + " is measured only with train.gradient_nonzeros: true");
  }
}

void check_cell(const RunDesign& design, const WantedCell& cell, const config::Schema& schema) {
  Names overrides, names, splits;
  for (const auto& [key, value] : design.settings(cell.row, cell.column)) {
    overrides.push_back(fmt::format("{}={}", key, value));
  }
  for (const std::string& metric : cell.metrics) {
    const size_t slash = metric.find('/');
    splits.push_back(metric.substr(0, slash));
    // Of the best possible sets, where they are known: "test Bayes/avg2".
    if (splits.back().ends_with(" Bayes")) splits.back().resize(splits.back().size() - 6);
    names.push_back("val" + metric.substr(slash));
  }
  // What can be selected by is what is measured.
  overrides.push_back(fmt::format("select=[{}]", fmt::join(names, ", ")));
  const config::Config config = config::load(schema, design.base, overrides);
  for (const std::string& metric : cell.logged) check_logged(metric, config);
  const auto& evaluated = config.get<config::Texts>("eval.splits");
  for (const std::string& split : splits) {
    if (std::find(evaluated.begin(), evaluated.end(), split) == evaluated.end()) {
      throw ConfigError(fmt::format("{} is none of the splits that are evaluated (eval.splits)", split));
    }
  }
}

}  // namespace

void check_cells(const RunDesign& design, const std::vector<WantedCell>& cells, const config::Schema& schema) {
  for (const WantedCell& cell : cells) {
    try {
      check_cell(design, cell, schema);
    } catch (const ConfigError& problem) {
      throw ConfigError(fmt::format("'{}': row {}, column {}: {}", design.file.string(),
                                    design.rows.each[cell.row].label, design.columns.each[cell.column].label,
                                    problem.what()));
    }
  }
}

}  // namespace settrain
