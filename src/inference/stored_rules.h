// The rules that were calibrated for a run's checkpoint: RUN/rules-best-val-top5.json.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "metrics/sets/calibrated_rule.h"
#include "src/run_folder/run_folder.h"

namespace settrain {

struct StoredRules {
  double temperature = 1;     // scores are divided by it, after the loss' score scale, before rules see them
  std::string calibrated_on;  // a phrase: "the calibration share of val, 1,200 images"
  std::vector<CalibratedRule> rules;
};

/// As text (JSON), for the file and for the metadata of an exported model.
std::string to_text(const StoredRules& rules);
/// Trusts nothing: throws RunError "`place`: ..." where the text is not what to_text() writes for `classes` classes.
StoredRules stored_rules_from_text(const std::string& text, int64_t classes, const std::string& place);

/// Writes the file for `checkpoint` ("best-val-top5") with the digest of its weights, `sha256`. Rules of the same name
/// are replaced, others stay where temperature and digest are the same.
void store_rules(const RunFolder& folder, const std::string& checkpoint, const std::string& sha256,
                 const StoredRules& rules);

/// Nothing where there is no such file. Throws RunError where it is damaged, or of other weights than `sha256`.
std::optional<StoredRules> load_stored_rules(const RunFolder& folder, const std::string& checkpoint,
                                             const std::string& sha256, int64_t classes);

}  // namespace settrain
