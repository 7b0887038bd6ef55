// What settings reach, as the page shows it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "src/studies/compare/comparison.h"

namespace settrain {

/// An object for the page: "keys" ([path, values]) that differ, as YAML or null; "metrics": for each "metric",
/// "settings" and "differences" (from the first setting, by seed), with texts as `settrain compare` prints them, and
/// mean, low and high of the 95 % interval, null where undefined.
nlohmann::ordered_json comparison_page_json(const std::vector<Setting>& settings,
                                            const std::vector<MetricComparison>& comparisons);

}  // namespace settrain
