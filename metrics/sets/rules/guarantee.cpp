#include "metrics/sets/rules/guarantee.h"

#include <fmt/format.h>

#include <algorithm>

namespace settrain {
namespace {

std::string conformal_guarantee(const SetRule& rule) {
  const std::string level = fmt::format("{:.10g}", 1 - rule.level);
  const std::string needs =
      "needs calibration images that are exchangeable with it and chose nothing, neither weights nor an epoch nor a "
      "parameter";
  switch (rule.threshold) {
    case ConformalThreshold::kMarginal:
    case ConformalThreshold::kFuzzy:
      return fmt::format(
          "the set holds the label of a new image with probability at least {}, on average over images; {}", level,
          needs);
    case ConformalThreshold::kClasswise:
      return fmt::format(
          "for every class, the set holds the label of a new image of it with probability at least {}; {}", level,
          needs);
    case ConformalThreshold::kSuperclass:
      return fmt::format(
          "for every superclass, the set holds the label of a new image of it with probability at least {}, on average "
          "over its images; {}",
          level, needs);
    case ConformalThreshold::kClustered:
      return fmt::format(
          "for every cluster of classes, the set holds the label of a new image of it with probability at least {}, on "
          "average over its images; nothing holds for the classes too rare to be in one; {}",
          level, needs);
    case ConformalThreshold::kRc3p:
      return fmt::format(
          "no guarantee: for every class the probability is at least {} only where the share of its calibration images "
          "beyond its largest rank is that of all images",
          level);
    case ConformalThreshold::kInterpolated:
      return fmt::format(
          "the set holds the label of a new image with probability at least {:.10g} (1 - 2 alpha), on average over images; {} is "
          "not guaranteed; {}",
          std::max(0.0, 1 - 2 * rule.level), level, needs);
  }
  return {};
}

}  // namespace

std::string guarantee_of(const SetRule& rule) {
  switch (rule.kind) {
    case SetRule::Kind::kTop:
      return "no guarantee: the size is fixed, the error is whatever it is";
    case SetRule::Kind::kAverage:
      return "no guarantee: the mean size is set, the error is whatever it is";
    case SetRule::Kind::kError:
      return fmt::format("no guarantee: the error is at most {} only where the probabilities are right", rule.level);
    case SetRule::Kind::kAverageError:
      return fmt::format("no guarantee: the error is at most {} on the images that set the threshold", rule.level);
    case SetRule::Kind::kConformal:
      return conformal_guarantee(rule);
  }
  return {};
}

}  // namespace settrain
