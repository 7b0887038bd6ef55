// What a run's folder says of it, without its data.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "src/studies/compare/compared_run.h"

namespace settrain {

/// A key that a run has otherwise than it is by default.
struct ChangedKey {
  std::string path, value, default_value;  // as YAML
};

/// In the order of the configuration. A default that refers to other keys or to the environment is what it comes to in
/// this configuration.
std::vector<ChangedKey> changed_keys(const config::Config& config);

/// The rows of metrics.jsonl, of `names` only: {"epoch": [...], "values": {name: [...]}}, null where a row lacks a
/// value or it is undefined. Throws as read_metrics().
nlohmann::ordered_json curves_json(const std::filesystem::path& metrics_jsonl, int64_t epochs,
                                   const std::vector<std::string>& names);

/// The names of a run's curves: loss, learning rate, and the metrics that it selects on, or its top-K accuracies on the
/// splits of eval.during_training where it selects on none.
std::vector<std::string> curve_names(const config::Config& config);

/// An object for the page: "name", "folder", "setting", "seed", "finished" (whether it has results), "epochs" (asked
/// for), "curves", "results" (a table a checkpoint: "checkpoint", "columns", "rows" of texts), "config" (YAML),
/// "changed", "provenance" (null where it is missing or damaged). `curves` are the names of its curves; where these
/// cannot be read there are none, and `notes` (sentences) say why.
nlohmann::ordered_json run_json(const ComparedRun& run, const std::string& setting,
                                const std::vector<std::string>& curves, nlohmann::ordered_json& notes);

/// The histograms of a checkpoint's set sizes in results.json, of all images of a split: [{"metric", "counts"}]; empty
/// where there are none.
nlohmann::ordered_json set_sizes_json(const ComparedRun& run, const std::string& checkpoint, const std::string& split);

}  // namespace settrain
