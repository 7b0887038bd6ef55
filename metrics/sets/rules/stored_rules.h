// The rules that were calibrated for one model, as text: of a run's RUN/rules-best-val-top5.json, and of the metadata
// of an exported model.
#pragma once

#include <string>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

struct StoredRules {
  double temperature = 1;              // scores are divided by it, after the loss' score scale, before rules see them
  std::string calibrated_on;           // a phrase: "the calibration share of val, 1,200 images"
  std::string checkpoint_sha256 = {};  // digest of the weights that they are for
  std::vector<CalibratedRule> rules = {};
  std::vector<SetRule> outdated = {};  // in what was read: those that must be calibrated again (OutdatedRule)
};

/// JSON on one line, without the outdated rules; stored_rules_from_text() of it gives every bit back.
std::string to_text(const StoredRules& rules);
/// Trusts nothing: throws RunError "`place`: ..." where the text is not what to_text() writes for `classes` classes.
StoredRules stored_rules_from_text(const std::string& text, int64_t classes, const std::string& place);

}  // namespace settrain
