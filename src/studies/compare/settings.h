// Runs that differ in their seed alone, together.
#pragma once

#include <string>
#include <vector>

#include "src/studies/compare/compared_run.h"

namespace settrain {

/// Runs of one configuration but for `seed` and the keys that change no number (Key::free).
struct Setting {
  std::string name;               // "A", "B", ..., "Z", "AA"
  std::vector<ComparedRun> runs;  // by their seeds, which all differ
};

/// In the order in which the settings first appear. A run whose setting has its seed already is a repetition, and
/// belongs to another setting of the same configuration.
std::vector<Setting> group_runs(std::vector<ComparedRun> runs);

/// A key that not all settings have alike.
struct DifferingKey {
  std::string path;
  std::vector<std::string> values;  // as YAML, one a setting; empty where that configuration has no such key
};

/// In the order in which comparing each setting with the first one finds them.
std::vector<DifferingKey> differing_keys(const std::vector<Setting>& settings);

}  // namespace settrain
