// A rule that was calibrated, as plain data. metrics/sets/calibrate.h makes it, stored_rules.h writes and reads it.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "metrics/sets/rules/set_rule.h"
#include "src/core/double_double.h"
#include "src/core/taxonomy.h"

namespace settrain {

/// The function that makes a probability of a score.
enum class ProbabilityKind { kSoftmax, kSigmoid };

/// Facts about the classes that sets are made of.
struct ClassFacts {
  int64_t classes = 0;
  std::vector<std::string> names = {};      // [classes], or empty where they are not known
  std::vector<int64_t> train_counts = {};   // [classes] training images, or empty
  std::vector<int64_t> superclass_of = {};  // [classes], or empty where there are none
  Taxonomy taxonomy = {};                   // of the classes, or empty where there is none
  ProbabilityKind probability = ProbabilityKind::kSoftmax;
};

/// A threshold, or a class' factor, with which the class is in every set.
inline constexpr double kAlwaysIn = std::numeric_limits<double>::infinity();

/// Whether no class has a larger score of this conformal rule. The largest score of raps and saps depends on lambda.
inline bool is_largest_score(const SetRule& rule, const DoubleDouble& score) {
  return rule.kind == SetRule::Kind::kConformal && rule.score != ConformalScore::kRaps &&
         rule.score != ConformalScore::kSaps && score == DoubleDouble();
}

/// The labels of calibration images, and their scores.
struct LabelScores {
  std::vector<DoubleDouble> scores;  // [images] the conformal score of the label
  std::vector<int64_t> labels;       // [images] in [0, classes)
};

/// The penalty of raps on each class beyond the k-th.
struct RapsPenalty {
  double lambda = 0;
  int64_t k = 0;
};

/// A rule and the result of its calibration. Plain data: to_json() and rule_from_json() keep every bit.
struct CalibratedRule {
  SetRule rule;
  ProbabilityKind probability = ProbabilityKind::kSoftmax;
  int64_t classes = 0;
  // [1] or [classes], as calibrate.h says of scores; p of average and average-error; empty for top and error.
  std::vector<DoubleDouble> thresholds = {};
  std::vector<int64_t> most_ranks = {};  // [classes] of rc3p: the largest rank, from 1, of a class in a set; else empty
  std::vector<double> class_factor = {};  // [classes] of pas and wpas: w_y / pi_y, kAlwaysIn where pi_y = 0; else empty
  RapsPenalty tuned = {};                 // of raps where its numbers are tuned
  std::vector<int64_t> tree = {};         // of the score tree: Taxonomy::parent; else empty
  // A conformal rule keeps its calibration images' scores where its threshold is that of all images, the class' or the
  // superclass'. Empty for other rules, and in rules of earlier versions.
  LabelScores label_scores = {};
  std::vector<int64_t> superclass_of = {};  // [classes] where a threshold is that of the superclass' images; else empty
  std::vector<double> place_weights = {};   // [classes] see metrics/sets/p_values.h; empty: for no place. Is not stored
  uint64_t seed = 0;                        // of u, where the rule is randomised
  int64_t images = 0;                       // that calibrated it; 0 where it needs none
  std::string guarantee = {};           // a sentence: what holds, and what for; "no guarantee: ..." where nothing does
  std::vector<std::string> notes = {};  // what a user should know, such as classes with too few images for alpha

  /// The parameters of raps, and the lambda of saps: the rule's, or those that tuning found.
  RapsPenalty penalty() const { return rule.tuning == RapsTuning::kNone ? RapsPenalty{rule.lambda, rule.k} : tuned; }
};

}  // namespace settrain
