// Statistics of a data set for programs.
#pragma once

#include <string>

#include "src/data_tools/stats.h"

namespace settrain {

/// An object; docs/file_formats.md says what its keys are.
std::string stats_json(const DataStats& stats);

}  // namespace settrain
