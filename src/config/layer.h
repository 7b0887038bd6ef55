// One file or the overrides, as a flat list of paths with their values.
#pragma once

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

/// Adds the value of a key to the layer, or a problem where it is empty, a map, or a list with anything but scalars.
void add_leaf(const std::string& path, const Origin& key_origin, const YamlNode& value, Layer& layer,
              Problems& problems);

/// Walks the top-level map of a file. `extends` is left out. Adds a problem for everything that is wrong whatever the
/// variants: duplicate keys, merge keys, dotted keys, empty values, scalars where sections belong and the other way
/// round.
Layer flatten(const YamlNode& root, const Declarations& declarations, Problems& problems);

}  // namespace settrain::config
