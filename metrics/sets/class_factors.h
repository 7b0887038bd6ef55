// What pas and wpas multiply probabilities by.
#pragma once

#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

/// [classes] w_y / pi_y: pi_y the class' share of the training images, w_y its weight by the rule's file (a class
/// table), or 1 for pas. Infinite where pi_y = 0. Empty for other scores. Throws DataError where the file cannot be
/// read, or holds what is no weight.
std::vector<double> class_factors(const SetRule& rule, const ClassFacts& facts);

}  // namespace settrain
