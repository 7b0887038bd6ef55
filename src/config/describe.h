// A key in words, for the key list, the reference page and messages.
#pragma once

#include <string>
#include <vector>

#include "src/config/declarations.h"

namespace settrain::config {

/// "boolean", "integer", "integer or auto", "number", "text", "list of numbers".
std::string type_text(const Key& key);

/// The default as in YAML, or "required".
std::string default_text(const Key& key);

/// "> 0", ">= 0 and < 1", "one of sgd, adam", "not empty"; an empty string where every value will do.
std::string range_text(const Key& key);

/// Whether two variants declare a key in the same way.
bool same_declaration(const Key& a, const Key& b);

/// Variants of a section that declare the same keys, in the order of their first.
using VariantGroup = std::vector<const Variant*>;
std::vector<VariantGroup> group_variants(const Section& section);

}  // namespace settrain::config
