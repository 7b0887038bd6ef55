// What a schema says about itself, for people and for editors.
#pragma once

#include <string>

#include "src/config/schema.h"

namespace settrain::config {

/// One line a key: path, type, default, range, unit, sentence. Aligned for a terminal.
std::string list_keys(const Schema& schema);

/// A JSON Schema (draft 2020-12) with which editors complete and check the YAML; a section's variants become if/then.
std::string to_json_schema(const Schema& schema);

/// The reference page docs/config_reference.md, in Markdown.
std::string to_markdown(const Schema& schema);

}  // namespace settrain::config
