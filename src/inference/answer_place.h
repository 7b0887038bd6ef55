// Rules at a place: a list of the classes that occur there, or their shares.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"

namespace settrain {

enum class PlaceKind {
  kOnly,   // classes that occur, in the calibration images' shares among them
  kPrior,  // shares that weigh the calibration images; scores stay as they are
  kNamed,  // shares that the rules were calibrated for, on scores that are corrected to them
};

struct PlaceShares {
  std::vector<double> prior;       // [classes] sums to 1; of PlaceKind::kOnly the same for each class that occurs
  std::vector<std::string> notes;  // sentences: how many classes the place has, and names that are none
};

/// Reads a file as read_listed_classes() does. `names` and `keys` [classes] of the model. Throws DataError, also where
/// no class occurs.
PlaceShares read_place(const std::filesystem::path& file, const std::vector<std::string>& names,
                       const std::vector<std::string>& keys, PlaceKind kind);

/// The rules as they are at the place, with a note for each on the effective number of its calibration images. Throws
/// ConfigError where a rule cannot be for a place.
std::vector<CalibratedRule> rules_at(const PlaceShares& place, PlaceKind kind, const std::vector<CalibratedRule>& rules,
                                     std::vector<std::string>& notes);

}  // namespace settrain
