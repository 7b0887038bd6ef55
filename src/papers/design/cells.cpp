#include "src/papers/design/cells.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "src/config/load.h"
#include "src/config/problems.h"
#include "src/config/value.h"
#include "src/core/error.h"
#include "src/core/text.h"
#include "src/studies/sweep/grid_runs.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;
using Names = std::vector<std::string>;

// Throws where an epoch's line has no such number, beside the validation metrics.
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
  Names overrides = overrides_of(design.settings(cell.row, cell.column)), names, splits;
  Names metrics = cell.metrics;
  metrics.insert(metrics.end(), cell.set_sizes.begin(), cell.set_sizes.end());
  for (const std::string& metric : metrics) {
    const size_t slash = metric.find('/');
    splits.push_back(metric.substr(0, slash));
    // The best possible sets, where they are known: "test Bayes/avg2".
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
  // A run can select by exactly the metrics that it measures, on every split the same. Only the test split is always
  // there.
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

// The settings that a run was trained and tested with, by key: seed, compute threads, checkpoints that were kept,
// metrics that were asked for and the folder of its first weights apart. Runs of one cell have it in common.
using ExperimentKeys = std::map<std::string, std::string>;

ExperimentKeys experiment_of(const config::Config& config) {
  static const std::set<std::string> kApart{"name",
                                            "seed",
                                            "select",
                                            "run.dir",
                                            "run.threads",
                                            "run.inference",
                                            "eval.top_k",
                                            "eval.average_k",
                                            "eval.count_bins",
                                            "eval.splits",
                                            "eval.during_training",
                                            "eval.superclass_accuracy",
                                            "train.top_k",
                                            "train.gradient_nonzeros"};
  ExperimentKeys keys;
  for (const config::Entry& entry : config.entries()) {
    if (entry.key.is_free || kApart.contains(entry.path)) continue;
    // Where the file of first weights lies does not matter.
    const bool is_file = entry.path == "model.pretrained";
    keys[entry.path] = is_file ? fs::path(config.get<std::string>(entry.path)).filename().string()
                               : config::yaml_value(entry.key, entry.value);
  }
  return keys;
}

// Runs that measured more in their steps come first, so that they are taken before others that repeat them.
std::vector<std::pair<fs::path, config::Config>> load_configs(const config::Schema& schema,
                                                              const std::vector<fs::path>& runs,
                                                              std::vector<std::string>& remarks) {
  std::vector<std::pair<fs::path, config::Config>> all;
  for (const fs::path& folder : runs) {
    try {
      all.emplace_back(folder, load_asked(schema, folder));
    } catch (const ConfigError& problem) {
      remarks.push_back(problem.what());
    }
  }
  const auto measured = [](const config::Config& config) {
    return config.get<config::Integers>("train.top_k").size() + config.get<bool>("train.gradient_nonzeros");
  };
  std::stable_sort(all.begin(), all.end(),
                   [&](const auto& a, const auto& b) { return measured(a.second) > measured(b.second); });
  return all;
}

// "train.precision: float32 in the run, bf16 in the cell", of each key that differs.
std::vector<std::string> differing_keys(const ExperimentKeys& run, const ExperimentKeys& cell) {
  const auto value = [](const ExperimentKeys& keys, const std::string& path) {
    const auto found = keys.find(path);
    return found == keys.end() ? "no such key" : found->second;
  };
  ExperimentKeys all = run;
  all.insert(cell.begin(), cell.end());
  std::vector<std::string> lines;
  for (const auto& [path, unused] : all) {
    const std::string theirs = value(run, path), ours = value(cell, path);
    if (theirs != ours) lines.push_back(fmt::format("{}: {} in the run, {} in the cell", path, theirs, ours));
  }
  return lines;
}

// The keys that keep a run, which belongs to no cell, from the nearest cell.
std::string least_differences(const ExperimentKeys& run, const std::vector<ExperimentKeys>& cells) {
  std::vector<std::string> least;
  for (const ExperimentKeys& cell : cells) {
    std::vector<std::string> lines = differing_keys(run, cell);
    if (least.empty() || lines.size() < least.size()) least = std::move(lines);
  }
  return join_first(least, 4, "; ");
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

CellRuns find_cell_runs(const RunDesign& design, const std::vector<WantedCell>& cells, const config::Schema& schema,
                        const std::vector<fs::path>& runs, bool of_design_only) {
  CellRuns result;
  std::map<ExperimentKeys, RunsBySeed> by_experiment;
  std::vector<ExperimentKeys> experiments;  // of the cells
  for (const WantedCell& cell : cells) {
    const std::vector<std::string> overrides = overrides_of(design.settings(cell.row, cell.column));
    experiments.push_back(experiment_of(config::load(schema, design.base, overrides)));
    by_experiment[experiments.back()];
  }
  if (of_design_only) result.wanted = std::ssize(by_experiment) * std::max<int64_t>(1, std::ssize(design.seeds));
  const std::set<std::string> wanted(design.seeds.begin(), design.seeds.end());
  for (const auto& [folder, config] : load_configs(schema, runs, result.remarks)) {
    const auto seed = config.get<int64_t>("seed");
    const ExperimentKeys experiment = experiment_of(config);
    const auto cell = by_experiment.find(experiment);
    if (cell == by_experiment.end()) {
      result.remarks.push_back(fmt::format("{}: its config is that of no cell; nearest: {}", folder.string(),
                                           least_differences(experiment, experiments)));
    } else if (of_design_only && !wanted.empty() && !wanted.contains(std::to_string(seed))) {
      continue;
    } else if (!fs::exists(folder / "results.json")) {
      result.remarks.push_back(fmt::format("{}: has no results yet", folder.string()));
    } else if (!cell->second.emplace(seed, folder).second) {
      result.remarks.push_back(
          fmt::format("{}: repeats seed {} of {}", folder.string(), seed, cell->second.at(seed).string()));
    } else {
      ++result.found;
    }
  }
  for (size_t i = 0; i < cells.size(); ++i) {
    result.by_cell.emplace(std::pair(cells[i].row, cells[i].column), by_experiment.at(experiments[i]));
  }
  return result;
}

void tidy_remarks(std::vector<std::string>& remarks) {
  std::sort(remarks.begin(), remarks.end());
  remarks.erase(std::unique(remarks.begin(), remarks.end()), remarks.end());
}

}  // namespace settrain
