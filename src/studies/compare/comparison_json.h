// A comparison for programs.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "src/studies/compare/comparison.h"

namespace settrain {

/// The number, or null where it is none.
nlohmann::ordered_json finite_or_null(double value);

/// An object; docs/file_formats.md describes it. What is undefined is null.
nlohmann::ordered_json comparison_json(const std::vector<Setting>& settings,
                                       const std::vector<MetricComparison>& comparisons);

}  // namespace settrain
