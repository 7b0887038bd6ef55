// What a rule promises.
#pragma once

#include <string>
#include <string_view>

#include "metrics/sets/rules/set_rule.h"

namespace settrain {

/// What CalibratedRule::guarantee begins with where nothing is promised.
inline constexpr std::string_view kNoGuarantee = "no guarantee: ";
inline bool is_guarantee(std::string_view sentence) {
  return !sentence.starts_with(kNoGuarantee);
}

/// A sentence: what holds, and what for; "no guarantee: ..." where nothing does.
std::string guarantee_of(const SetRule& rule);

}  // namespace settrain
