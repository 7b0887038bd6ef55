// A rule that was calibrated, as plain data, and as JSON. metrics/sets/calibrate.h makes it.
#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "metrics/sets/rules/set_rule.h"
#include "src/core/double_double.h"
#include "src/core/error.h"

namespace settrain {

/// What makes a probability of a score.
enum class ProbabilityKind { kSoftmax, kSigmoid };

/// What is known of the classes that sets are made of.
struct ClassFacts {
  int64_t classes = 0;
  std::vector<std::string> names = {};      // [classes], or empty where they are not known
  std::vector<int64_t> train_counts = {};   // [classes] training images, or empty
  std::vector<int64_t> superclass_of = {};  // [classes], or empty where there are none
  ProbabilityKind probability = ProbabilityKind::kSoftmax;
};

/// A threshold, or a class' factor, with which the class is in every set.
inline constexpr double kAlwaysIn = std::numeric_limits<double>::infinity();

/// A rule, and what calibration came to. Plain data: to_json() and rule_from_json() keep every bit.
struct CalibratedRule {
  SetRule rule;
  ProbabilityKind probability = ProbabilityKind::kSoftmax;
  int64_t classes = 0;
  // [1] or [classes], as calibrate.h says of scores; p of average and average-error; empty for top and error.
  std::vector<DoubleDouble> thresholds = {};
  std::vector<int64_t> most_ranks = {};  // [classes] of rc3p: the largest rank, from 1, of a class in a set; else empty
  std::vector<double> class_factor = {};  // [classes] of pas and wpas: w_y / pi_y, kAlwaysIn where pi_y = 0; else empty
  uint64_t seed = 0;                      // of u, where the rule is randomised
  int64_t images = 0;                     // that calibrated it; 0 where it needs none
  std::string guarantee = {};           // a sentence: what holds, and what for; "no guarantee: ..." where nothing does
  std::vector<std::string> notes = {};  // what a user should know, such as classes with too few images for alpha
};

/// The version of what to_json() writes. Version 1 had float32's digits, and no number.
inline constexpr int64_t kRuleVersion = 2;

/// A rule that an earlier version calibrated, and whose thresholds mean something else today.
class OutdatedRule : public RunError {
 public:
  explicit OutdatedRule(const SetRule& rule);

  SetRule rule;
};

nlohmann::ordered_json to_json(const CalibratedRule& rule);
/// Reads rules of earlier versions where they mean the same sets, and throws OutdatedRule where not: aps, raps and saps
/// of version 1. Trusts nothing: throws RunError that says what is wrong where it is not what to_json() writes for
/// `classes` classes.
CalibratedRule rule_from_json(const nlohmann::ordered_json& json, int64_t classes);

}  // namespace settrain
