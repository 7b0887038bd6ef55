// The needs of a rule, and its guarantee.
#pragma once

#include <string>
#include <string_view>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// Whether calibration needs images: all rules but top and error.
bool needs_images(const SetRule& rule);

/// Throws ConfigError that names the rule where the probabilities of a sigmoid are what it cannot use, or K is above
/// the number of classes.
void check_suits(const SetRule& rule, ProbabilityKind probability, int64_t classes);

/// The same, and throws ConfigError where the facts lack what the rule needs: superclasses, training counts. ShapeError
/// where they are not those of `classes` classes.
void check_suits(const SetRule& rule, const ClassFacts& facts);

/// CalibratedRule::guarantee begins with this where nothing is promised.
inline constexpr std::string_view kNoGuarantee = "no guarantee: ";
inline bool is_guarantee(std::string_view sentence) {
  return !sentence.starts_with(kNoGuarantee);
}

/// A sentence: what holds, and what for; "no guarantee: ..." where nothing does.
std::string guarantee_of(const SetRule& rule);

}  // namespace settrain
