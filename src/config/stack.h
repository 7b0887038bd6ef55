// Layers on top of each other: files, then overrides.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "src/config/declarations.h"
#include "src/config/layer.h"
#include "src/config/problems.h"

namespace settrain::config {

struct Stacked {
  std::map<std::string, Leaf> leaves;  // the topmost of each path
  Choices choices;                     // every section with variants
};

/// Puts the layers on top of each other, the lowest first. A layer that changes a section's variant drops what lower
/// layers gave to the variants. Adds a problem for unknown keys, unknown variants, and keys of another variant than the
/// one chosen in the layer or below. `file` is what `${file}` stands for.
Stacked stack(const std::vector<Layer>& layers, const Declarations& declarations, const std::string& file,
              Problems& problems);

}  // namespace settrain::config
