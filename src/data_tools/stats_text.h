// Statistics of a data set for people.
#pragma once

#include <string>

#include "src/data_tools/stats.h"

namespace settrain {

/// A table with a column a split, classes by name, and what the label noise did.
std::string stats_text(const DataStats& stats);

}  // namespace settrain
