// What a rule promises.
#pragma once

#include <string>

#include "metrics/sets/rules/set_rule.h"

namespace settrain {

/// A sentence: what holds, and what for; "no guarantee: ..." where nothing does.
std::string guarantee_of(const SetRule& rule);

}  // namespace settrain
