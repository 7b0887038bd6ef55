// Values as text, and text as values.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "src/config/interpolate.h"
#include "src/config/key.h"
#include "src/config/problems.h"
#include "src/config/yaml.h"

namespace settrain::config {

/// The word that stands for this value of the key, or null.
const std::string* word_for(const Key& key, const Value& value);

/// The shortest text that reads back as the same number, always with a decimal point: 1.0, 1.0e-05.
std::string format_real(double value);

/// The text as a YAML scalar, in double quotes unless every YAML reader takes it for text without.
std::string yaml_text(std::string_view text);

/// The value in YAML (lists in flow style) such that load() gives it back to the last bit.
std::string yaml_value(const Key& key, const Value& value);

/// A declared default in YAML: as yaml_value, but with the ${...} it holds.
std::string yaml_default(const Key& key);

/// The text that replaces `${path}` for a key with this value: a text as it is, anything else as in YAML.
std::string reference_text(const Key& key, const Value& value);

/// The value of a key, or one element of its list, that `text` stands for once its references are replaced; strict.
/// `quoted`: the text is in quotes, and so neither boolean nor number. Throws InvalidValue, which says what to write
/// instead, for a wrong type, a value out of range, or none of the choices.
Value to_value(const Key& key, const std::string& text, bool quoted);

/// The value of `key` at `path`, its references filled in by `lookup`. Adds a problem for a wrong type, a value out of
/// range and so on, each element of a list at its own place, and returns nullopt; also, without a problem, where
/// `lookup` throws BrokenReference.
std::optional<Value> read_value(const std::string& path, const Key& key, const YamlNode& node, const Lookup& lookup,
                                Problems& problems);

}  // namespace settrain::config
