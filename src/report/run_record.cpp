#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "metrics/entries.h"
#include "src/config/interpolate.h"
#include "src/config/value.h"
#include "src/core/error.h"
#include "src/core/mean_interval.h"
#include "src/core/metric_name.h"
#include "src/formats/input_file.h"
#include "src/formats/safetensors.h"
#include "src/report/report_parts.h"
#include "src/run_folder/metrics_log.h"
#include "src/run_folder/run_folder.h"

namespace settrain {
namespace {

using nlohmann::ordered_json;
using Names = std::vector<std::string>;

// The value of a default; nothing where it refers to a value that only the start of the run knew.
std::optional<config::Value> resolved_default(const config::Config& config, const config::Key& key) {
  const auto* text = std::get_if<std::string>(&key.default_value);
  if (!text || text->find("${") == std::string::npos) return key.default_value;
  try {
    return config::expand(*text,
                          [&](const std::string& name) {
                            if (name == "file") return config.get<std::string>("name");
                            if (!config.has(name)) throw config::BrokenReference();
                            return config::reference_text(config.at(name).key, config.at(name).value);
                          })
        .text;
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

ordered_json damaged_is_null(const std::filesystem::path& file) {
  std::ifstream stream(file);
  ordered_json json = ordered_json::parse(stream, nullptr, /*allow_exceptions=*/false);
  return json.is_discarded() ? ordered_json(nullptr) : json;
}

size_t place_in(Names& names, const std::string& name) {
  const auto place = static_cast<size_t>(std::find(names.begin(), names.end(), name) - names.begin());
  if (place == names.size()) names.push_back(name);
  return place;
}

// A row a metric, a column a split.
ordered_json results_table(const CheckpointValues& checkpoint) {
  Names columns, metrics;
  std::vector<Names> cells;
  for (const auto& [name, value] : checkpoint.values) {
    const std::string metric = name_of_metric(name);
    const size_t column = place_in(columns, split_of_metric(name)), row = place_in(metrics, metric);
    cells.resize(metrics.size());
    cells[row].resize(std::max(cells[row].size(), column + 1));
    cells[row][column] = format_value(value, unit_of(metric));
  }
  ordered_json rows = ordered_json::array();
  for (size_t i = 0; i < metrics.size(); ++i) {
    cells[i].resize(columns.size());
    cells[i].insert(cells[i].begin(), metrics[i]);
    rows.push_back(cells[i]);
  }
  return {{"checkpoint", checkpoint.name}, {"columns", columns}, {"rows", rows}};
}

}  // namespace

std::vector<ChangedKey> changed_keys(const config::Config& config) {
  std::vector<ChangedKey> changed;
  const std::vector<config::Curve> curves = config.curves("loss");
  for (const config::Entry& entry : config.entries()) {
    const bool is_of_curve = std::ranges::any_of(
        curves, [&](const config::Curve& curve) { return entry.path.starts_with(curve.path + "."); });
    if (!is_of_curve && resolved_default(config, entry.key) == entry.value) continue;
    changed.push_back({entry.path, config::yaml_value(entry.key, entry.value), config::yaml_default(entry.key)});
  }
  return changed;
}

Names curve_names(const config::Config& config) {
  Names names{"train/loss", "train/lr"};
  for (const config::Curve& curve : config.curves("loss")) names.push_back("train/" + curve.path);
  const size_t of_training = names.size();
  for (const std::string& select : config.get<config::Texts>("select")) {
    if (select != RunFolder::kLast) names.push_back(select);
  }
  if (names.size() > of_training) return names;
  for (const std::string& split : config.get<config::Texts>("eval.during_training")) {
    for (const int64_t k : config.get<config::Integers>("eval.top_k")) names.push_back(split + "/" + topk_name(k));
  }
  return names;
}

ordered_json curves_json(const std::filesystem::path& metrics_jsonl, int64_t epochs, const Names& names) {
  ordered_json curves{{"epoch", ordered_json::array()}, {"values", ordered_json::object()}};
  for (const std::string& name : names) curves["values"][name] = ordered_json::array();
  for (const MetricsRow& row : read_metrics(metrics_jsonl, epochs)) {
    curves["epoch"].push_back(row.epoch);
    for (const std::string& name : names) {
      const auto found =
          std::find_if(row.values.begin(), row.values.end(), [&](const auto& value) { return value.first == name; });
      // The library writes null for NaN.
      curves["values"][name].push_back(found == row.values.end() ? ordered_json(nullptr) : ordered_json(found->second));
    }
  }
  return curves;
}

// Why the numbers of a calibration are not shown: the checkpoint has other weights by now, or cannot be read. Empty
// where they are shown, also after the checkpoint's removal. Early versions did not record the weights.
std::string why_outdated(const ordered_json& calibration, const std::filesystem::path& checkpoint) {
  if (!calibration.contains("checkpoint_sha256") || !std::filesystem::exists(checkpoint)) return "";
  try {
    const auto metadata = safetensors_contents(InputFile(checkpoint)).metadata;
    const auto found = metadata.find("sha256");
    const bool is_same = found != metadata.end() && found->second == calibration["checkpoint_sha256"];
    return is_same ? "" : "the checkpoint has other weights than were calibrated; run `settrain calibrate` again";
  } catch (const RunError& problem) {
    return problem.what();
  }
}

ordered_json run_json(const ComparedRun& run, const std::string& setting, const Names& curves, ordered_json& notes) {
  const RunFolder folder = RunFolder::open_existing(run.folder);
  const bool is_finished = !run.checkpoints.empty();
  const auto epochs = run.config.get<int64_t>("train.epochs");
  ordered_json drawn{{"epoch", ordered_json::array()}, {"values", ordered_json::object()}};
  try {
    drawn = curves_json(folder.metrics_jsonl(), is_finished ? epochs : 0, curves);
  } catch (const RunError& problem) {
    notes.push_back(fmt::format("The run's curves are missing: {}", problem.what()));
  }
  ordered_json results = ordered_json::array(), calibrations = results, changed = results;
  for (const CheckpointValues& checkpoint : run.checkpoints) {
    results.push_back(results_table(checkpoint));
    const auto file = folder.calibration(checkpoint.name);
    if (!std::filesystem::exists(file)) continue;
    ordered_json calibration = damaged_is_null(file);
    if (!calibration.is_object() || !calibration.contains("rules")) {
      notes.push_back(fmt::format("'{}' is damaged, so what was calibrated is not shown.", file.string()));
      continue;
    }
    const std::string why = why_outdated(calibration, folder.checkpoint_file(checkpoint.name));
    if (!why.empty()) {
      notes.push_back(fmt::format("'{}' is not shown: {}", file.string(), why));
      continue;
    }
    calibration["checkpoint"] = checkpoint.name;
    calibrations.push_back(std::move(calibration));
  }
  for (const auto& [path, value, default_value] : changed_keys(run.config))
    changed.push_back({path, value, default_value});
  std::error_code ignored;
  const auto full = std::filesystem::weakly_canonical(run.folder, ignored);
  return {{"name", full.filename().string()},
          {"folder", run.folder.string()},
          {"setting", setting},
          {"seed", run.seed},
          {"finished", is_finished},
          {"epochs", epochs},
          {"curves", std::move(drawn)},
          {"results", std::move(results)},
          {"calibrations", std::move(calibrations)},
          {"config", run.config.to_yaml()},
          {"changed", std::move(changed)},
          {"provenance", damaged_is_null(folder.provenance())}};
}

ordered_json set_sizes_json(const ComparedRun& run, const std::string& checkpoint, const std::string& split) {
  ordered_json found = ordered_json::array();
  const ordered_json results = damaged_is_null(RunFolder::open_existing(run.folder).results_json());
  for (const ordered_json& result : results) {
    if (result.value("checkpoint", "") != checkpoint) continue;
    const ordered_json sizes = result.value("set_sizes", ordered_json::object()).value(split, ordered_json::object());
    for (const auto& [metric, counts] : sizes.items()) {
      if (is_of_all_samples(metric)) found.push_back({{"metric", metric}, {"counts", counts}});
    }
  }
  return found;
}

}  // namespace settrain
