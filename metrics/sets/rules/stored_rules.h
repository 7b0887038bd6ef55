// Calibrated rules as JSON, and all those of one model as text, for RUN/rules-best-val-top5.json of a run and the
// metadata of an exported model.
#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "src/core/error.h"

namespace settrain {

/// The version of the JSON that to_json() writes. Version 1 had float32's digits, and no number; version 2 added
/// probabilities up that float64 has not.
inline constexpr int64_t kRuleVersion = 3;

/// A rule that an earlier version calibrated, and whose thresholds mean something else today.
class OutdatedRule : public RunError {
 public:
  explicit OutdatedRule(const SetRule& rule);

  SetRule rule;
};

nlohmann::ordered_json to_json(const CalibratedRule& rule);
/// Reads rules of earlier versions where they mean the same sets, and throws OutdatedRule where not: aps, raps and saps
/// of version 1, and thresholds of version 2 that are of the tail (score_rows.h). Trusts nothing: throws RunError that
/// says what is wrong where it is not what to_json() writes for `classes` classes.
CalibratedRule rule_from_json(const nlohmann::ordered_json& json, int64_t classes);

/// A place for which rules were calibrated: its classes have other shares than the model's training.
struct CalibratedPlace {
  std::string name;                        // is_place_name()
  std::string source;                      // a phrase: where the shares come from
  std::vector<double> prior;               // [classes] the classes' shares there, which sum to 1
  std::vector<double> offsets;             // [classes] added to scores (label_shift.h)
  std::vector<CalibratedRule> rules = {};  // of scores with the offsets; for_place() makes them those of the place
};

/// Whether it can be the name of a place: letters, digits, - and _, from 1 to 64 of them.
bool is_place_name(std::string_view name);

/// Reads what to_text() writes of a place. Throws RunError as rule_from_json() does.
CalibratedPlace place_from_json(const nlohmann::ordered_json& json, int64_t classes);

struct StoredRules {
  double temperature = 1;              // scores are divided by it, after the loss' score scale, before rules see them
  std::string calibrated_on;           // a phrase: "the calibration share of val, 1,200 images"
  std::string checkpoint_sha256 = {};  // digest of the weights that they are for
  std::string inference = "exact";     // the form in which the model computed the scores (run.inference)
  // The largest difference of a score in each other form, over some of the images that calibrated.
  std::map<std::string, double> inference_differences = {};
  std::vector<CalibratedRule> rules = {};
  std::vector<CalibratedPlace> places = {};
  std::vector<SetRule> outdated = {};  // in what was read: those that must be calibrated again (OutdatedRule)
  std::string chosen = {};             // the name of the rule of `rules` that answers unless another is asked for
};

/// Whether the rule answers every image with all classes: it had too few calibration images, or the labels of too many
/// have the largest score there is.
bool is_always_full(const CalibratedRule& rule);

/// The rule that answers unless another is asked for: the chosen one; else the first conformal:lac for all images, else
/// the first rule that was calibrated, of those that do not answer with all classes every time. Null where there is
/// none.
const CalibratedRule* default_rule(std::span<const CalibratedRule> rules, const std::string& chosen);

/// JSON on one line, without the outdated rules; stored_rules_from_text() of it gives every bit back.
std::string to_text(const StoredRules& rules);
/// Trusts nothing: throws RunError "`place`: ..." where the text is not what to_text() writes for `classes` classes.
StoredRules stored_rules_from_text(const std::string& text, int64_t classes, const std::string& place);

}  // namespace settrain
