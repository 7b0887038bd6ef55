#include "src/papers/design/check_cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "src/config/load.h"
#include "src/config/problems.h"
#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

using Names = std::vector<std::string>;

// What an epoch's line has, beside the validation metrics.
void check_logged(const std::string& metric, const config::Config& config) {
  Names known{"train/loss", "train/top1", "train/lr", "time/epoch_s", "time/images_per_s", "time/peak_memory_bytes"};
  for (const int64_t k : config.get<config::Integers>("train.top_k")) known.push_back(fmt::format("train/top{}", k));
  if (config.get<bool>("train.gradient_nonzeros")) known.push_back("train/gradient_nonzeros");
  if (std::find(known.begin(), known.end(), metric) != known.end()) return;
  if (metric == "train/gradient_nonzeros") {
    throw ConfigError(metric + " is measured only with train.gradient_nonzeros: true");
  }
  if (metric.starts_with("train/top")) {
    throw ConfigError(metric + " is not measured: train.top_k says which K there are");
  }
  throw ConfigError(fmt::format("{} is no number of an epoch{}", metric, did_you_mean(metric, known)));
}

void check_cell(const RunDesign& design, const WantedCell& cell, const config::Schema& schema) {
  Names overrides, names, splits;
  for (const auto& [key, value] : design.settings(cell.row, cell.column)) {
    overrides.push_back(fmt::format("{}={}", key, value));
  }
  Names metrics = cell.metrics;
  metrics.insert(metrics.end(), cell.set_sizes.begin(), cell.set_sizes.end());
  for (const std::string& metric : metrics) {
    const size_t slash = metric.find('/');
    splits.push_back(metric.substr(0, slash));
    // Of the best possible sets, where they are known: "test Bayes/avg2".
    if (splits.back().ends_with(" Bayes")) splits.back().resize(splits.back().size() - 6);
    add_once(names, config::yaml_text("test" + metric.substr(slash)));
  }
  Names logged;
  for (const std::string& metric : cell.logged) {
    if (metric.starts_with("val/")) {
      add_once(names, config::yaml_text("test" + metric.substr(3)));
    } else {
      add_once(logged, metric);
    }
  }
  // What can be selected by is what is measured, on every split the same; only the test split is always there.
  overrides.emplace_back("eval.during_training=[test]");
  overrides.push_back(fmt::format("select=[{}]", fmt::join(names, ", ")));
  const config::Config config =
      config::load(schema, design.base, overrides, design.places_of_settings(cell.row, cell.column));
  for (const std::string& metric : logged) check_logged(metric, config);
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
