// From what was written to what a key holds.
#pragma once

#include <optional>
#include <string>

#include "src/config/interpolate.h"
#include "src/config/key.h"
#include "src/config/problems.h"
#include "src/config/yaml.h"

namespace settrain::config {

/// The value of `key` at `path`, its references filled in by `lookup`. Adds a problem for a wrong type, a value out of
/// range and so on, each element of a list at its own place, and returns nullopt; also, without a problem, where
/// `lookup` throws BrokenReference.
std::optional<Value> read_value(const std::string& path, const Key& key, const YamlNode& node, const Lookup& lookup,
                                Problems& problems);

}  // namespace settrain::config
