// The values given on the command line: --set key.path=value.
#pragma once

#include <string>
#include <vector>

#include "src/config/declarations.h"
#include "src/config/layer.h"
#include "src/config/problems.h"

namespace settrain::config {

/// One layer of all overrides "key.path=value", whose values are YAML. The last one of a path wins. A section can be
/// set to a word that all of its keys take ("data.expected=any"). Adds a problem for each that has no '=', is no YAML,
/// or names a section otherwise. `places`: see load().
Layer read_overrides(const std::vector<std::string>& overrides, const std::vector<std::string>& places,
                     const Declarations& declarations, Problems& problems);

}  // namespace settrain::config
