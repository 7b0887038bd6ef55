// A schema as text: a list of its keys, a JSON Schema, and the reference page.
#pragma once

#include <string>

#include "src/config/schema.h"

namespace settrain::config {

/// One line a key: path, type, default, range, unit, sentence, aligned. Where a terminal's `columns` are given: the
/// sentence on lines of its own, and no line wider than the terminal.
std::string list_keys(const Schema& schema, size_t columns = 0);

/// A JSON Schema (draft 2020-12) with which editors complete and check the YAML; a section's variants become if/then.
std::string to_json_schema(const Schema& schema);

/// The reference page docs/config_reference.md, in Markdown.
std::string to_markdown(const Schema& schema);

}  // namespace settrain::config
