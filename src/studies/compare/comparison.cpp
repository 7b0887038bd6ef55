#include "src/studies/compare/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "src/config/differences.h"
#include "src/core/error.h"
#include "src/core/metric_name.h"
#include "src/core/text.h"

namespace settrain {
namespace {

using Names = std::vector<std::string>;

// The part of a run's configuration that its setting is known by.
std::string identity(const ComparedRun& run) {
  std::vector<config::Entry> entries = run.config.entries();
  std::erase_if(entries, [](const config::Entry& entry) { return entry.path == "seed" || entry.key.is_free; });
  return config::Config(std::move(entries)).to_yaml();
}

bool has_seed(const Setting& setting, int64_t seed) {
  return std::any_of(setting.runs.begin(), setting.runs.end(), [&](const auto& run) { return run.seed == seed; });
}

std::string name_of(size_t index) {
  const std::string letter(1, static_cast<char>('A' + index % 26));
  return index < 26 ? letter : name_of(index / 26 - 1) + letter;
}

bool contains(const Names& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// The metrics that the results of all runs have. The best that is possible ("test Bayes") is no run's result.
Names shared_metrics(const std::vector<Setting>& settings) {
  Names shared;
  const auto have = [&](const std::string& metric) {
    const auto has = [&](const ComparedRun& run) {
      return find_value(checkpoint_for(run, metric), metric).has_value();
    };
    return std::all_of(settings.begin(), settings.end(), [&](const Setting& setting) {
      return std::all_of(setting.runs.begin(), setting.runs.end(), has);
    });
  };
  for (const auto& [metric, value] : settings.front().runs.front().checkpoints.front().values) {
    if (metric.find(' ') == std::string::npos && have(metric)) shared.push_back(metric);
  }
  if (!shared.empty()) return shared;
  std::string folders;
  for (const Setting& setting : settings) folders += "\n  " + setting.runs.front().folder.string();
  throw RunError("the results of these runs have no metric in common:" + folders);
}

// Metrics of the test split, or of whatever was evaluated where that was not.
Names of_test_split(const Names& shared) {
  Names test = shared;
  std::erase_if(test, [](const std::string& metric) { return !metric.starts_with("test/"); });
  return test.empty() ? shared : test;
}

Names selected_on(const std::vector<Setting>& settings, const Names& shared) {
  Names chosen;
  for (const Setting& setting : settings) {
    for (const std::string& metric : setting.runs.front().config.get<config::Texts>("select")) {
      const size_t slash = metric.find('/');
      if (slash == std::string::npos) continue;  // `last`
      const std::string name = "test" + metric.substr(slash);
      if (contains(shared, name) && !contains(chosen, name)) chosen.push_back(name);
    }
  }
  return chosen;
}

bool is_a_detail(const std::string& metric) {
  for (const char* part : {"/few_", "/medium_", "/many_", "/bin", "_size", "_lambda", "_gap@", "/below_half@"}) {
    if (metric.find(part) != std::string::npos) return true;
  }
  return false;
}

void check_is_shared(const std::string& metric, const Names& shared) {
  if (contains(shared, metric)) return;
  if (contains(shared, "test/" + metric)) {
    throw ConfigError(fmt::format("--metric {0}: say of which split, such as test/{0}", metric));
  }
  throw ConfigError(
      fmt::format("--metric {}: not in the results of all the runs{}", metric, did_you_mean(metric, shared)));
}

SettingValues values_of(const Setting& setting, const std::string& metric) {
  SettingValues result;
  const std::string size = size_metric(metric);
  for (const ComparedRun& run : setting.runs) {
    const CheckpointValues& checkpoint = checkpoint_for(run, metric);
    if (!contains(result.checkpoints, checkpoint.name)) result.checkpoints.push_back(checkpoint.name);
    result.values.push_back(find_value(checkpoint, metric).value());
    if (!size.empty()) {
      result.sizes.push_back(find_value(checkpoint, size).value_or(std::numeric_limits<double>::quiet_NaN()));
    }
  }
  result.interval = mean_interval(result.values);
  if (!size.empty()) result.size_interval = mean_interval(result.sizes);
  return result;
}

// The digest of the images that a metric was evaluated on; empty where the results do not say.
std::string digest_of_images(const ComparedRun& run, const std::string& metric) {
  const auto& digests = checkpoint_for(run, metric).digests;
  const auto found = digests.find(split_of_metric(metric));
  return found == digests.end() ? "" : found->second;
}

SettingDifference difference_of(const std::vector<Setting>& settings, size_t place, const std::string& metric,
                                const std::vector<SettingValues>& values) {
  const Setting &first = settings.front(), &second = settings[place];
  SettingDifference result;
  std::vector<double> before, after, sizes_before, sizes_after;
  for (size_t i = 0; i < first.runs.size(); ++i) {
    for (size_t j = 0; j < second.runs.size(); ++j) {
      if (first.runs[i].seed != second.runs[j].seed) continue;
      result.seeds.push_back(first.runs[i].seed);
      const std::string ours = digest_of_images(first.runs[i], metric),
                        theirs = digest_of_images(second.runs[j], metric);
      if (!ours.empty() && !theirs.empty() && ours != theirs) result.other_images.push_back(first.runs[i].seed);
      before.push_back(values[0].values[i]);
      after.push_back(values[place].values[j]);
      if (values[0].sizes.empty()) continue;
      sizes_before.push_back(values[0].sizes[i]);
      sizes_after.push_back(values[place].sizes[j]);
    }
  }
  if (result.seeds.empty()) return result;
  result.interval = paired_difference(after, before);
  if (!sizes_after.empty()) result.size_interval = paired_difference(sizes_after, sizes_before);
  return result;
}

}  // namespace

std::vector<Setting> group_runs(std::vector<ComparedRun> runs) {
  std::vector<Setting> settings;
  std::vector<std::string> identities;
  for (ComparedRun& run : runs) {
    const std::string own = identity(run);
    size_t place = 0;
    while (place < settings.size() && (identities[place] != own || has_seed(settings[place], run.seed))) ++place;
    if (place == settings.size()) {
      settings.push_back({name_of(place), {}});
      identities.push_back(own);
    }
    settings[place].runs.push_back(std::move(run));
  }
  for (Setting& setting : settings) {
    std::sort(setting.runs.begin(), setting.runs.end(), [](const auto& a, const auto& b) { return a.seed < b.seed; });
  }
  return settings;
}

std::vector<DifferingKey> differing_keys(const std::vector<Setting>& settings) {
  std::vector<DifferingKey> keys;
  const std::string first = identity(settings.front().runs.front());
  for (size_t i = 1; i < settings.size(); ++i) {
    for (const auto& [path, before, after] : config::differences(first, identity(settings[i].runs.front()))) {
      auto row = std::find_if(keys.begin(), keys.end(), [&](const DifferingKey& key) { return key.path == path; });
      // The settings that are not mentioned have what the first one has.
      if (row == keys.end()) row = keys.insert(keys.end(), {path, std::vector<std::string>(settings.size(), before)});
      row->values[i] = after;
    }
  }
  return keys;
}

Names choose_metrics(const std::vector<Setting>& settings, const Names& wanted) {
  const Names shared = shared_metrics(settings);
  if (wanted == Names{"all"}) return of_test_split(shared);
  for (const std::string& metric : wanted) check_is_shared(metric, shared);
  if (!wanted.empty()) return wanted;
  Names chosen = selected_on(settings, shared);
  if (!chosen.empty()) return chosen;
  chosen = of_test_split(shared);
  std::erase_if(chosen, is_a_detail);
  return chosen.empty() ? shared : chosen;
}

MetricComparison compare_metric(const std::vector<Setting>& settings, const std::string& metric) {
  MetricComparison result{metric, {}, {}};
  for (const Setting& setting : settings) result.settings.push_back(values_of(setting, metric));
  for (size_t i = 1; i < settings.size(); ++i) {
    result.differences.push_back(difference_of(settings, i, metric, result.settings));
  }
  return result;
}

}  // namespace settrain
