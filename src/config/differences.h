// The differences between two resolved configurations.
#pragma once

#include <string>
#include <vector>

namespace settrain::config {

/// A key with its values as YAML; an empty text where that configuration has no such key.
struct Difference {
  std::string path, before, after;

  bool operator==(const Difference&) const = default;
};

/// The keys whose values differ between two texts of Config::to_yaml(), in the order of the second; those that only the
/// first has come last. The texts may come from two versions of the program: no schema is asked. Throws ConfigError
/// where a text is not YAML.
std::vector<Difference> differences(const std::string& before, const std::string& after);

}  // namespace settrain::config
