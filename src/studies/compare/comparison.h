// Settings of runs: the values that they reach, and by how much they differ.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "src/core/mean_interval.h"
#include "src/studies/compare/compared_run.h"

namespace settrain {

/// Runs of one configuration but for `seed` and the keys that change no number (Key::free).
struct Setting {
  std::string name;               // "A", "B", ..., "Z", "AA"
  std::vector<ComparedRun> runs;  // sorted by their seeds, which all differ
};

/// Groups runs into settings, in the order in which the settings first appear. A run whose setting has its seed already
/// is a repetition, and belongs to another setting of the same configuration.
std::vector<Setting> group_runs(std::vector<ComparedRun> runs);

/// A key that not all settings have alike.
struct DifferingKey {
  std::string path;
  std::vector<std::string> values;  // as YAML, one a setting; empty where that configuration has no such key
};

/// The keys that differ, in the order in which comparing each setting with the first one finds them.
std::vector<DifferingKey> differing_keys(const std::vector<Setting>& settings);

/// The value of one metric in the runs of a setting.
struct SettingValues {
  std::vector<std::string> checkpoints;  // the checkpoints' name, or their names where the runs' differ
  std::vector<double> values;            // one a run
  MeanInterval interval{};
  std::vector<double> sizes;  // the mean sizes of an average-K accuracy's sets, of the same checkpoints
  std::optional<MeanInterval> size_interval{};
};

/// A difference of two runs of one seed, and the 95 % percentile interval of it over resampled images.
struct BootstrapInterval {
  double difference = 0, low = 0, high = 0;
};

/// A paired bootstrap of the two runs of one seed.
struct SeedBootstrap {
  int64_t seed = 0, images = 0, resamples = 0;
  BootstrapInterval interval{};
  std::optional<BootstrapInterval> size_interval{};
};

/// A setting against the first one: its values minus those of the first, by seed.
struct SettingDifference {
  std::vector<int64_t> seeds;           // that both have; where there are none, the intervals say nothing
  std::vector<int64_t> other_images{};  // those of these seeds whose two runs were evaluated on different images
  MeanInterval interval{};
  std::optional<MeanInterval> size_interval{};
  std::vector<SeedBootstrap> bootstraps{};
};

struct MetricComparison {
  std::string metric;  // "test/top5"
  std::vector<SettingValues> settings;
  std::vector<SettingDifference> differences;  // of the settings after the first
};

/// The metrics to compare, of those that the results of all runs have: `wanted` ("test/top5"; "all" for every one of
/// the test split); without a wish those that the runs selected on, on the test split, and where that says nothing the
/// whole test split, without shot groups and thresholds. Throws RunError where the runs have no metric in common, and
/// ConfigError with the nearest name where one that is wanted is not among them.
std::vector<std::string> choose_metrics(const std::vector<Setting>& settings, const std::vector<std::string>& wanted);

MetricComparison compare_metric(const std::vector<Setting>& settings, const std::string& metric);

/// The comparison for people: which runs make which setting, the keys that differ, and for each metric the mean of
/// every setting with its interval and the differences from the first; below it what the numbers mean. Every line ends
/// in a newline.
std::string format_comparison(const std::vector<Setting>& settings, const std::vector<MetricComparison>& comparisons);

/// The comparison for programs: an object that docs/file_formats.md describes. What is undefined is null.
nlohmann::ordered_json comparison_json(const std::vector<Setting>& settings,
                                       const std::vector<MetricComparison>& comparisons);

/// The number, or null where it is NaN or infinite.
nlohmann::ordered_json finite_or_null(double value);

}  // namespace settrain
