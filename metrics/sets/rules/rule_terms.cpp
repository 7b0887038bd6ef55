#include "metrics/sets/rules/rule_terms.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "src/core/error.h"
#include "src/core/shape.h"

namespace settrain {
namespace {

[[noreturn]] void refuse(const SetRule& rule, const std::string& reason) {
  throw ConfigError(fmt::format("rule '{}': {}", rule.name(), reason));
}

template <class T>
void check_facts(std::string_view name, const std::vector<T>& facts, int64_t classes) {
  if (!facts.empty()) check_shape(name, std::array{std::ssize(facts)}, {classes});
}

/// The event that has a probability of at least {}. Not for rc3p, which promises nothing.
std::string coverage_of(const SetRule& rule) {
  if (rule.score == ConformalScore::kRisk) {
    return "on average over images, the set of a new image holds at least a share {} of its labels; of an image with one "
           "label, it holds it with probability at least that";
  }
  switch (rule.threshold) {
    case ConformalThreshold::kClasswise:
      return "for every class, the set holds the label of a new image of it with probability at least {}";
    case ConformalThreshold::kSuperclass:
      return "for every superclass, the set holds the label of a new image of it with probability at least {}, on average "
             "over its images";
    case ConformalThreshold::kClustered:
      return "for every cluster of classes, the set holds the label of a new image of it with probability at least {}, on "
             "average over its images; nothing holds for the classes too rare to be in one";
    case ConformalThreshold::kInterpolated:
      return fmt::format(
          "the set holds the label of a new image with probability at least {:.10g} (1 - 2 alpha), on average over images; {{}} is "
          "not guaranteed",
          std::max(0.0, 1 - 2 * rule.level));
    default:
      return "the set holds the label of a new image with probability at least {}, on average over images";
  }
}

std::string conformal_guarantee(const SetRule& rule) {
  const std::string level = fmt::format("{:.10g}", 1 - rule.level);
  if (rule.threshold == ConformalThreshold::kRc3p) {
    return fmt::format(
        "no guarantee: for every class the probability is at least {} only where the share of its calibration images "
        "beyond its largest rank is that of all images",
        level);
  }
  return fmt::format(fmt::runtime(coverage_of(rule)), level) +
         "; needs new images like those that calibrated, which chose nothing before: neither weights nor an epoch nor a "
         "setting";
}

}  // namespace

bool needs_images(const SetRule& rule) {
  return rule.kind != SetRule::Kind::kTop && rule.kind != SetRule::Kind::kError;
}

void check_suits(const SetRule& rule, ProbabilityKind probability, int64_t classes) {
  const bool conformal = rule.kind == SetRule::Kind::kConformal;
  const bool sized = rule.kind == SetRule::Kind::kTop || rule.kind == SetRule::Kind::kAverage;
  if (sized && rule.level > static_cast<double>(classes)) {
    refuse(rule, fmt::format("K is above the number of classes, {}", classes));
  }
  const bool sums = rule.kind == SetRule::Kind::kError || (conformal && is_ranked(rule.score));
  if (probability == ProbabilityKind::kSigmoid && sums) {
    refuse(rule,
           "it needs probabilities that sum to 1, and those of a sigmoid do not; top, average, average-error and "
           "conformal:lac, pas and wpas do without");
  }
}

void check_suits(const SetRule& rule, const ClassFacts& facts) {
  check_facts("names of the classes", facts.names, facts.classes);
  check_facts("training counts of the classes", facts.train_counts, facts.classes);
  check_facts("superclasses of the classes", facts.superclass_of, facts.classes);
  if (!facts.taxonomy.empty()) {
    check_shape("taxonomy of the classes", std::array{facts.taxonomy.num_classes()}, {facts.classes});
  }
  check_suits(rule, facts.probability, facts.classes);
  if (rule.kind != SetRule::Kind::kConformal) return;
  const bool prevalence = rule.score == ConformalScore::kPas || rule.score == ConformalScore::kWpas;
  if ((prevalence || rule.threshold == ConformalThreshold::kFuzzy) &&
      std::all_of(facts.train_counts.begin(), facts.train_counts.end(), [](int64_t count) { return count <= 0; })) {
    refuse(rule, "it needs the numbers of training images of the classes, which are not known");
  }
  if (rule.threshold == ConformalThreshold::kSuperclass && facts.superclass_of.empty()) {
    refuse(rule, "it needs superclasses, and these classes have none");
  }
  if (rule.score == ConformalScore::kTree && facts.taxonomy.empty()) {
    refuse(rule, "it needs a taxonomy of the classes (data.taxonomy), and these have none");
  }
}

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
