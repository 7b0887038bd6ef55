// The file with the rules that were calibrated for a run's checkpoint: RUN/rules-best-val-top5.json.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "metrics/sets/rules/stored_rules.h"
#include "src/run_folder/run_folder.h"

namespace settrain {

/// Writes the file for `checkpoint` ("best-val-top5"). Rules and places of the same name are replaced; others stay
/// where temperature, calibration images, form of inference and weights are the same. The default rule stays too,
/// unless `rules` has another. Returns the names of those that were dropped. A damaged file is replaced with a warning.
std::vector<std::string> store_rules(const RunFolder& folder, const std::string& checkpoint, const StoredRules& rules);

/// Nothing where there is no such file. Throws RunError where it is damaged, or belongs to other weights than `sha256`.
std::optional<StoredRules> load_stored_rules(const RunFolder& folder, const std::string& checkpoint,
                                             const std::string& sha256, int64_t classes);

}  // namespace settrain
