#include "src/studies/compare/compared_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "src/config/load.h"
#include "src/core/error.h"
#include "src/core/metric_name.h"
#include "src/run_folder/run_folder.h"

namespace settrain {
namespace {

namespace fs = std::filesystem;
using nlohmann::ordered_json;

std::vector<CheckpointValues> read_results(const fs::path& file) {
  std::vector<CheckpointValues> checkpoints;
  try {
    std::ifstream stream(file);
    for (const ordered_json& result : ordered_json::parse(stream)) {
      checkpoints.push_back({result.at("checkpoint").get<std::string>(), {}, {}});
      const ordered_json digests = result.value("digests", ordered_json::object());
      for (const auto& [split, digest] : digests.items()) checkpoints.back().digests[split] = digest.get<std::string>();
      for (const auto& [split, values] : result.at("metrics").items()) {
        for (const auto& [name, value] : values.items()) {
          checkpoints.back().values.emplace_back(
              split + "/" + name, value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>());
        }
      }
    }
  } catch (const ordered_json::exception& error) {
    throw RunError(fmt::format("'{}' is damaged: {}", file.string(), error.what()));
  }
  if (checkpoints.empty()) throw RunError(fmt::format("'{}' has no checkpoint's results", file.string()));
  return checkpoints;
}

}  // namespace

std::vector<fs::path> find_runs(const std::vector<std::string>& arguments) {
  std::vector<fs::path> runs;
  for (const std::string& argument : arguments) {
    if (RunFolder::is_there(argument) || !fs::is_directory(argument)) {
      runs.push_back(RunFolder::open_existing(argument).path());  // throws where nothing is there
      continue;
    }
    std::vector<fs::path> held;
    for (const auto& entry : fs::directory_iterator(argument)) {
      if (entry.is_directory() && RunFolder::is_there(entry.path())) held.push_back(entry.path());
    }
    if (held.empty()) {
      throw RunError(fmt::format("'{}' is neither a run's folder nor one that directly holds runs' folders", argument));
    }
    std::sort(held.begin(), held.end());
    runs.insert(runs.end(), held.begin(), held.end());
  }
  return runs;
}

std::vector<ComparedRun> read_runs(const config::Schema& schema, const std::vector<fs::path>& folders) {
  std::string unfinished;
  for (const fs::path& folder : folders) {
    if (!fs::exists(RunFolder::open_existing(folder).results_json())) unfinished += "\n  " + folder.string();
  }
  if (!unfinished.empty()) {
    throw RunError(
        "runs without results yet (no results.json):" + unfinished +
        "\nFinish them (settrain --resume RUN), or leave them out (for a sweep, name the folders of its finished runs)");
  }
  std::vector<ComparedRun> runs;
  for (const fs::path& folder : folders) {
    const RunFolder run = RunFolder::open_existing(folder);
    config::Config config = config::load_recorded(schema, run.config());
    const auto seed = config.get<int64_t>("seed");
    runs.push_back({folder, std::move(config), seed, read_results(run.results_json())});
  }
  return runs;
}

const CheckpointValues& checkpoint_for(const ComparedRun& run, const std::string& metric) {
  for (const std::string& selected : {metric, accuracy_metric(metric)}) {
    const std::string wanted = RunFolder::checkpoint_name("val/" + name_of_metric(selected));
    for (const CheckpointValues& checkpoint : run.checkpoints) {
      if (checkpoint.name == wanted) return checkpoint;
    }
  }
  // The order of `select` does not matter; one that was chosen on test images is taken only where there is no other.
  for (const std::string& start : {RunFolder::checkpoint_name("val/"), std::string(RunFolder::kLast)}) {
    for (const CheckpointValues& checkpoint : run.checkpoints) {
      if (checkpoint.name.starts_with(start)) return checkpoint;
    }
  }
  return run.checkpoints.front();
}

std::optional<double> find_value(const CheckpointValues& checkpoint, const std::string& metric) {
  for (const auto& [name, value] : checkpoint.values) {
    if (name == metric) return value;
  }
  return std::nullopt;
}

}  // namespace settrain
