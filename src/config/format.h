// Values as text.
#pragma once

#include <string>
#include <string_view>

#include "src/config/key.h"

namespace settrain::config {

/// The shortest text that reads back as the same number, always with a decimal point: 1.0, 1.0e-05.
std::string format_real(double value);

/// The text as a YAML scalar, in double quotes unless every YAML reader takes it for text without.
std::string yaml_text(std::string_view text);

/// The value in YAML (lists in flow style) such that load() gives it back to the last bit.
std::string yaml_value(const Key& key, const Value& value);

/// A declared default in YAML: as yaml_value, but with the ${...} it holds.
std::string yaml_default(const Key& key);

/// What `${path}` of a key with this value becomes: a text as it is, anything else as in YAML.
std::string reference_text(const Key& key, const Value& value);

}  // namespace settrain::config
