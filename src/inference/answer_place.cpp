#include "src/inference/answer_place.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "datasets/class_table.h"
#include "metrics/sets/conformal_thresholds.h"
#include "metrics/sets/p_values.h"
#include "metrics/sets/rules/rule_terms.h"
#include "src/core/error.h"

namespace settrain {
namespace {

constexpr double kEnoughOfNeeded = 10;  // times the images that a finite threshold needs

// The rule at the place, and what there is to say about it.
CalibratedRule rule_at(const PlaceShares& place, PlaceKind kind, const CalibratedRule& rule, std::string& note) {
  if (!needs_images(rule.rule)) {
    if (kind != PlaceKind::kPrior) return rule;
    throw ConfigError(fmt::format(
        "rule '{}': a prior weighs calibration images, of which it has none; --only leaves classes out, and "
        "a prior that `settrain calibrate --prior NAME=FILE` knows corrects scores",
        rule.rule.name()));
  }
  std::vector<bool> occurs;
  for (const double share : place.prior) occurs.push_back(share > 0);
  const PlaceWeights weights =
      kind == PlaceKind::kOnly ? place_weights(rule, occurs) : place_weights(rule, place.prior);
  CalibratedRule result = for_place(rule, weights);
  if (rule.rule.threshold == ConformalThreshold::kClasswise) return result;  // whatever the shares are
  const bool are_few = weights.effective_images < static_cast<double>(images_needed(rule.rule.level)) * kEnoughOfNeeded;
  note = fmt::format(
      "{}: the effective number of calibration images is {:.0f} of {}{}{}", rule.rule.name(), weights.effective_images,
      rule.images, are_few ? ", few for its alpha: coverage varies with the few images that count" : "",
      weights.always > 0 ? fmt::format("; {} without any {} in every set",
                                       weights.always == 1 ? "1 class" : fmt::format("{} classes", weights.always),
                                       weights.always == 1 ? "is" : "are")
                         : "");
  return result;
}

}  // namespace

PlaceShares read_place(const std::filesystem::path& file, const std::vector<std::string>& names,
                       const std::vector<std::string>& keys, PlaceKind kind) {
  const ListedClasses listed = read_listed_classes(file, names, keys, /*with_weights=*/kind != PlaceKind::kOnly);
  PlaceShares place{listed.weights, {}};
  const double largest = *std::ranges::max_element(place.prior);  // the sum of large weights may overflow
  if (largest == 0) throw DataError(fmt::format("'{}' has none of the model's classes", file.string()));
  double sum = 0;
  for (const double weight : place.prior) sum += weight / largest;
  for (double& weight : place.prior) weight = weight / largest / sum;
  place.notes.push_back(fmt::format("'{}' has {} of the {} classes", file.string(),
                                    std::ranges::count_if(place.prior, [](double share) { return share > 0; }),
                                    place.prior.size()));
  if (listed.unknown.empty()) return place;
  constexpr size_t kShown = 5;
  const auto some = std::span(listed.unknown).first(std::min(kShown, listed.unknown.size()));
  place.notes.push_back(fmt::format("{} of its names are no class of the model: {}{}", listed.unknown.size(),
                                    fmt::join(some, ", "), listed.unknown.size() > kShown ? ", ..." : ""));
  return place;
}

std::vector<CalibratedRule> rules_at(const PlaceShares& place, PlaceKind kind, const std::vector<CalibratedRule>& rules,
                                     std::vector<std::string>& notes) {
  std::vector<CalibratedRule> result;
  for (const CalibratedRule& rule : rules) {
    std::string note;
    result.push_back(rule_at(place, kind, rule, note));
    if (!note.empty()) notes.push_back(std::move(note));
  }
  return result;
}

}  // namespace settrain
