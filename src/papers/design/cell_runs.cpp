#include "src/papers/design/cell_runs.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "src/config/format.h"
#include "src/config/load.h"
#include "src/core/digest.h"
#include "src/core/error.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;

std::string experiment_of_cell(const RunDesign& design, const WantedCell& cell, const config::Schema& schema) {
  std::vector<std::string> overrides;
  for (const auto& [key, value] : design.settings(cell.row, cell.column)) {
    overrides.push_back(fmt::format("{}={}", key, value));
  }
  return experiment_of(config::load(schema, design.base, overrides));
}

// Those that measured more in their steps first, so that they are taken before others that repeat them.
std::vector<std::pair<fs::path, config::Config>> load_configs(const config::Schema& schema,
                                                              const std::vector<fs::path>& runs,
                                                              std::vector<std::string>& remarks) {
  std::vector<std::pair<fs::path, config::Config>> all;
  for (const fs::path& folder : runs) {
    try {
      all.emplace_back(folder, config::load_recorded(schema, folder / "config.yaml"));
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

}  // namespace

std::string experiment_of(const config::Config& config) {
  static const std::set<std::string> kApart{"name",
                                            "seed",
                                            "select",
                                            "run.dir",
                                            "run.threads",
                                            "eval.top_k",
                                            "eval.average_k",
                                            "eval.count_bins",
                                            "eval.splits",
                                            "eval.during_training",
                                            "eval.superclass_accuracy",
                                            "train.top_k",
                                            "train.gradient_nonzeros"};
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

CellRuns find_cell_runs(const RunDesign& design, const std::vector<WantedCell>& cells, const config::Schema& schema,
                        const std::vector<fs::path>& runs, bool of_design_only) {
  CellRuns result;
  std::map<std::string, RunsBySeed> by_experiment;
  std::vector<std::string> experiments;  // of the cells
  for (const WantedCell& cell : cells) {
    experiments.push_back(experiment_of_cell(design, cell, schema));
    by_experiment[experiments.back()];
  }
  if (of_design_only) result.wanted = std::ssize(by_experiment) * std::max<int64_t>(1, std::ssize(design.seeds));
  const std::set<std::string> wanted(design.seeds.begin(), design.seeds.end());
  for (const auto& [folder, config] : load_configs(schema, runs, result.remarks)) {
    const auto seed = config.get<int64_t>("seed");
    const auto cell = by_experiment.find(experiment_of(config));
    if (cell == by_experiment.end()) {
      result.remarks.push_back(fmt::format("{}: its config is that of no cell", folder.string()));
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
