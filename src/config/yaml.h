// YAML text to a tree that knows the place of every node. Stricter than YAML: what yaml-cpp would pass over in silence
// is an error.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/config/problems.h"

namespace settrain::config {

/// The origin of YAML text: a file, whose places are "name:line:column", or an override, which is one place.
struct Source {
  std::string name;
  int number;  // see Origin::source
  bool has_lines;

  /// `line` and `column` count from 1.
  Origin at(int line, int column) const;
};

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };

  Kind kind;
  Origin origin;
  std::string text;              // of a scalar
  bool quoted = false;           // a quoted or block scalar: always text
  std::vector<YamlNode> keys;    // of a map, in the order of the file, duplicates included
  std::vector<YamlNode> values;  // of a map, or the elements of a list

  bool is(Kind the_kind) const { return kind == the_kind; }
};

/// The only document of `text`; an empty text is kNull. Adds a problem and returns nullopt for bytes that are not
/// UTF-8, control characters, bad syntax, a second document, tags, more than 10,000 nodes (aliases expanded) or a
/// nesting deeper than 50.
std::optional<YamlNode> parse_yaml(const std::string& text, const Source& source, Problems& problems);

}  // namespace settrain::config
