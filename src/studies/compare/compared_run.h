// A finished run, as it is compared: its configuration and its results.
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "src/config/config.h"
#include "src/config/schema.h"

namespace settrain {

/// One checkpoint of results.json.
struct CheckpointValues {
  std::string name;                                    // "best-val-top5"
  std::vector<std::pair<std::string, double>> values;  // "test/top5", in the file's order; NaN where undefined
  std::map<std::string, std::string> digests{};        // of the images of "test", ...; empty for an early version
};

struct ComparedRun {
  std::filesystem::path folder;
  config::Config config;
  int64_t seed = 0;
  std::vector<CheckpointValues> checkpoints;  // at least one where read_runs() made it
};

/// The runs that the arguments name: a run's folder is itself; any other folder stands for the runs' folders that it
/// directly holds, in the order of their names. Throws RunError, naming the folder, where it is neither.
std::vector<std::filesystem::path> find_runs(const std::vector<std::string>& arguments);

/// Throws RunError that names every run without results.json, and where one is damaged; ConfigError where a run's
/// config.yaml is no configuration of this program.
std::vector<ComparedRun> read_runs(const config::Schema& schema, const std::vector<std::filesystem::path>& folders);

/// The checkpoint that a metric is read from: for "test/top5", and for its size or threshold, the one that was chosen
/// on the validation split by the same metric, best-val-top5; where the run did not select on it, the first that was
/// chosen there by another, else the last epoch's, else its first one.
const CheckpointValues& checkpoint_for(const ComparedRun& run, const std::string& metric);

/// The value of a metric, "test/top5", where the checkpoint's results have it.
std::optional<double> find_value(const CheckpointValues& checkpoint, const std::string& metric);

}  // namespace settrain
