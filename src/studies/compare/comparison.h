// What settings reach, and by how much they differ.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "src/core/mean_interval.h"
#include "src/studies/compare/settings.h"

namespace settrain {

/// The value of one metric in the runs of a setting.
struct SettingValues {
  std::vector<std::string> checkpoints;  // that the values are of: one name, or the names where the runs' differ
  std::vector<double> values;            // one a run
  MeanInterval interval{};
  std::vector<double> sizes;  // of an average-K accuracy the realised mean size of its sets, of the same checkpoints
  std::optional<MeanInterval> size_interval{};
};

/// A difference of two runs of one seed, and the 95 % percentile interval of it over resampled images.
struct BootstrapInterval {
  double difference = 0, low = 0, high = 0;
};

/// What a paired bootstrap says of one seed.
struct SeedBootstrap {
  int64_t seed = 0, images = 0, resamples = 0;
  BootstrapInterval interval{};
  std::optional<BootstrapInterval> size_interval{};
};

/// A setting against the first one: its values minus those of the first, by seed.
struct SettingDifference {
  std::vector<int64_t> seeds;  // that both have; where there are none, no interval holds
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

}  // namespace settrain
