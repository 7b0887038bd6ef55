#include "metrics/sets/rules/rule_suits.h"

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
}

}  // namespace settrain
