// Layers: a config file, each file that it extends, and the overrides, as flat lists of paths with their values.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "src/config/declarations.h"
#include "src/config/problems.h"
#include "src/config/yaml.h"

namespace settrain::config {

/// A value as it was written: a scalar, or a list of scalars.
struct Leaf {
  std::string path;
  YamlNode value;
};

/// A key that the schema does not have.
struct Unknown {
  std::string path;
  Origin origin;
};

struct Layer {
  std::vector<Leaf> leaves;  // every path once, each a key of some variant
  std::vector<Unknown> unknown;
};

/// Walks the top-level map of a file. `extends` is left out. Adds a problem for everything that is wrong whatever the
/// variants: duplicate keys, merge keys, dotted keys, empty values, scalars where sections belong and the other way
/// round.
Layer flatten(const YamlNode& root, const Declarations& declarations, Problems& problems);

/// The layers of `file` and of its chain of `extends`, the last base first. Adds a problem and returns nullopt where a
/// file is missing, larger than 1 MiB, no YAML map, or extends itself: without all of them the rest cannot be judged.
/// `stem` is what `${file}` stands for.
std::optional<std::vector<Layer>> read_files(const std::filesystem::path& file, const std::string& stem,
                                             const Declarations& declarations, Problems& problems);

/// One layer of all overrides "key.path=value", whose values are YAML. The last one of a path wins. A section can be
/// set to a word that all of its keys take ("data.expected=any"). Adds a problem for each that has no '=', is no YAML,
/// or names a section otherwise. `places`: see load().
Layer read_overrides(const std::vector<std::string>& overrides, const std::vector<std::string>& places,
                     const Declarations& declarations, Problems& problems);

}  // namespace settrain::config
