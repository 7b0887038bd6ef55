#include "src/studies/compare/settings.h"

#include <algorithm>
#include <utility>

#include "src/config/differences.h"

namespace settrain {
namespace {

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

}  // namespace settrain
