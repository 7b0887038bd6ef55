// From stacked layers to typed values.
#pragma once

#include <string>
#include <vector>

#include "src/config/config.h"
#include "src/config/declarations.h"
#include "src/config/problems.h"
#include "src/config/stack.h"

namespace settrain::config {

/// The value of every key that the chosen variants have, in the schema's order. Adds a problem for each that has no
/// valid one, and leaves it out. `file` is what `${file}` stands for.
std::vector<Entry> resolve(const Declarations& declarations, const Stacked& stacked, const std::string& file,
                           Problems& problems);

}  // namespace settrain::config
