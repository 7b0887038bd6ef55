// The JSON Schema of one key.
#pragma once

#include <nlohmann/json.hpp>

#include "src/config/key.h"

namespace settrain::config {

/// Type, range, choices, default and description. What is no text may also be a text with a `${...}`.
nlohmann::ordered_json key_schema(const Key& key);

}  // namespace settrain::config
