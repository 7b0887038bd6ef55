// Walks a YAML tree and gathers what is wrong with it: for the files of grids, tables and figures.
#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/config/problems.h"
#include "src/config/yaml.h"
#include "src/core/text.h"
#include "src/studies/sweep/grid.h"

namespace settrain {

/// Gives what a node holds; where it holds something else, a problem at its place is added, and the walk goes on with
/// an empty value.
class TreeReader {
 public:
  using YamlNode = config::YamlNode;

  explicit TreeReader(config::Problems& problems) : problems_(problems) {}

  void problem(const YamlNode& at, const std::string& what) { problems_.add(at.origin, "", what); }

  /// Visits the entries of a map whose keys are among `known`; an empty list: any. visit(key, value).
  template <class Visit>
  void each(const YamlNode& map, const std::vector<std::string>& known, const Visit& visit) {
    if (!map.is(YamlNode::Kind::kMap)) return problem(map, "expected a map of keys and values");
    std::vector<std::string> seen;
    for (size_t i = 0; i < map.keys.size(); ++i) {
      const std::string& key = map.keys[i].text;
      if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
        problem(map.keys[i], in_quotes(key) + " comes twice");
      } else if (!known.empty() && std::find(known.begin(), known.end(), key) == known.end()) {
        problem(map.keys[i], "unknown key " + in_quotes(key) + did_you_mean(key, known));
      } else {
        visit(key, map.values[i]);
      }
      seen.push_back(key);
    }
  }

  std::string text(const YamlNode& node);

  /// A list of texts, or one alone.
  std::vector<std::string> texts(const YamlNode& node);

  /// A value of a config key, as YAML; also {from, to, curve}, for a number that changes by epoch.
  std::string value(const YamlNode& node);

  std::optional<double> number(const YamlNode& node);
  std::vector<double> numbers(const YamlNode& node, size_t count);
  int64_t integer(const YamlNode& node, int64_t least, int64_t most);

  /// A list of values of a config key, or {range: [first, last, count]}, or {log_range: ...}.
  std::vector<std::string> values(const YamlNode& node);

  /// Config keys with values; those that the sweep itself decides are refused.
  Settings settings(const YamlNode& node);

  /// A problem where the sweep itself decides `key`.
  void refuse_reserved(const std::string& key, const YamlNode& at);

  /// The part of the map `presets` of `root` that has this name; null, and a problem, where there is none.
  const YamlNode* find_preset(const YamlNode& root, const std::string& name);

 protected:
  config::Problems& problems_;
};

/// The most values of a range, and points of a random step.
inline constexpr int64_t kMostValues = 10'000;

/// The text of a YAML file of up to 1 MiB. Throws ConfigError that calls it by `what` ("sweep") where it cannot be read
/// or is none.
std::string read_yaml_text(const std::filesystem::path& file, const std::string& what);

}  // namespace settrain
