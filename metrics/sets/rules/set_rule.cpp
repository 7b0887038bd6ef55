#include "metrics/sets/rules/set_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <vector>

#include "metrics/sets/rules/rule_text.h"
#include "src/core/text.h"

namespace settrain {
namespace {

using Words = std::vector<std::string>;

// In the order of the enumerators.
const Words& kind_words() {
  static const Words words{"top", "average", "error", "average-error", "conformal"};
  return words;
}
const Words& score_words() {
  static const Words words{"lac", "aps", "raps", "saps", "pas", "wpas"};
  return words;
}
const Words& threshold_words() {
  static const Words words{"marginal", "classwise", "superclass", "interpolated", "rc3p", "clustered", "fuzzy"};
  return words;
}

/// What a score takes in parentheses.
Words parameters_of(ConformalScore score) {
  switch (score) {
    case ConformalScore::kAps:
      return {"randomised"};
    case ConformalScore::kRaps:
      return {"lambda", "k", "randomised"};
    case ConformalScore::kSaps:
      return {"lambda", "randomised"};
    case ConformalScore::kWpas:
      return {"weights"};
    default:
      return {};
  }
}

double default_lambda(ConformalScore score) {
  return score == ConformalScore::kRaps ? kRapsLambda : score == ConformalScore::kSaps ? kSapsLambda : 0;
}

int64_t default_k(ConformalScore score) {
  return score == ConformalScore::kRaps ? kRapsK : 0;
}

template <class Enum>
Enum word(const RuleText& text, std::string_view place, const std::string& name, const Words& words) {
  const auto found = std::find(words.begin(), words.end(), name);
  if (found == words.end()) text.fail_unknown(place, name, words);
  return static_cast<Enum>(std::distance(words.begin(), found));
}

void read_score(const RuleText& text, const RulePart& part, SetRule& rule) {
  rule.score = word<ConformalScore>(text, "a conformal score", part.name, score_words());
  text.check_arguments(part, parameters_of(rule.score));
  rule.lambda = default_lambda(rule.score);
  rule.k = default_k(rule.score);
  if (const std::string* value = text.argument(part, "randomised")) {
    if (*value != "true" && *value != "false") text.fail("randomised must be true or false, got '" + *value + "'");
    rule.randomised = *value == "true";
  }
  if (const std::string* value = text.argument(part, "lambda")) {
    rule.lambda = text.number("lambda", *value);
    if (rule.lambda < 0) text.fail("lambda must be at least 0, got '" + *value + "'");
  }
  if (const std::string* value = text.argument(part, "k")) rule.k = text.whole_number("k", *value, 0);
  if (const std::string* value = text.argument(part, "weights")) rule.weights = *value;
  if (rule.score == ConformalScore::kWpas && rule.weights.empty()) {
    text.fail("wpas needs a file of class weights: wpas(weights=FILE)");
  }
}

void read_threshold(const RuleText& text, const RulePart& part, SetRule& rule) {
  rule.threshold = word<ConformalThreshold>(text, "a kind of threshold", part.name, threshold_words());
  switch (rule.threshold) {
    case ConformalThreshold::kInterpolated: {
      text.check_arguments(part, Words{""});
      const std::string* tau = text.argument(part, "");
      if (!tau) text.fail("interpolated needs its TAU: interpolated(0.9)");
      rule.tau = text.number("TAU", *tau);
      if (!(rule.tau >= 0 && rule.tau <= 1)) text.fail("TAU must lie in [0, 1], got '" + *tau + "'");
      if (rule.score != ConformalScore::kLac) text.fail("interpolated is for the score lac, whose largest value is 1");
      break;
    }
    case ConformalThreshold::kFuzzy: {
      text.check_arguments(part, Words{"", "share"});
      const std::string* sigma = text.argument(part, "");
      if (!sigma) text.fail("fuzzy needs its SIGMA: fuzzy(1e-5)");
      rule.sigma = text.number("SIGMA", *sigma);
      if (!(rule.sigma > 0)) text.fail("SIGMA must be above 0, got '" + *sigma + "'");
      break;
    }
    case ConformalThreshold::kClustered:
      text.check_arguments(part, Words{"clusters", "share"});
      if (const auto* value = text.argument(part, "clusters")) rule.clusters = text.whole_number("clusters", *value, 2);
      break;
    default:
      text.check_arguments(part, {});
  }
  if (const std::string* value = text.argument(part, "share")) rule.share = text.fraction("share", *value);
}

std::string with_arguments(const std::string& name, const Words& arguments) {
  return arguments.empty() ? name : fmt::format("{}({})", name, join(arguments, ","));
}

std::string score_name(const SetRule& rule) {
  Words arguments;
  if (rule.lambda != default_lambda(rule.score)) arguments.push_back(fmt::format("lambda={}", rule.lambda));
  if (rule.k != default_k(rule.score)) arguments.push_back(fmt::format("k={}", rule.k));
  if (rule.randomised) arguments.push_back("randomised=true");
  if (!rule.weights.empty()) arguments.push_back("weights=" + rule.weights);
  return with_arguments(score_words()[static_cast<size_t>(rule.score)], arguments);
}

std::string threshold_name(const SetRule& rule) {
  Words arguments;
  if (rule.threshold == ConformalThreshold::kInterpolated) arguments.push_back(fmt::format("{}", rule.tau));
  if (rule.threshold == ConformalThreshold::kFuzzy) arguments.push_back(fmt::format("{}", rule.sigma));
  if (rule.clusters) arguments.push_back(fmt::format("clusters={}", rule.clusters));
  if (rule.share > 0) arguments.push_back(fmt::format("share={}", rule.share));
  return with_arguments(threshold_words()[static_cast<size_t>(rule.threshold)], arguments);
}

}  // namespace

std::string SetRule::name() const {
  const std::string& first = kind_words()[static_cast<size_t>(kind)];
  if (kind != Kind::kConformal) return fmt::format("{}:{}", first, level);
  const std::string start = fmt::format("{}:{}:{}", first, score_name(*this), level);
  return threshold == ConformalThreshold::kMarginal ? start : fmt::format("{}:{}", start, threshold_name(*this));
}

double SetRule::wanted_coverage() const {
  const bool has_error = kind != Kind::kTop && kind != Kind::kAverage;
  return has_error ? 1 - level : std::numeric_limits<double>::quiet_NaN();
}

SetRule parse_set_rule(const std::string& name) {
  using Kind = SetRule::Kind;
  const RuleText text(name);
  const std::vector<RulePart>& parts = text.parts();
  SetRule rule;
  rule.kind = word<Kind>(text, "a kind of rule", parts[0].name, kind_words());
  text.check_arguments(parts[0], {});
  if (rule.kind == Kind::kConformal) {
    if (parts.size() < 3) text.fail("expected conformal:SCORE:ALPHA, such as conformal:lac:0.1");
    if (parts.size() > 4) text.fail("expected no more than conformal:SCORE:ALPHA:THRESHOLD");
    read_score(text, parts[1], rule);
    text.check_arguments(parts[2], {});
    rule.level = text.fraction("alpha", parts[2].name);
    if (parts.size() == 4) read_threshold(text, parts[3], rule);
    return rule;
  }
  static constexpr std::array kExamples{"top:5", "average:2.5", "error:0.1", "average-error:0.1"};
  if (parts.size() != 2)
    text.fail(std::string("expected one number, such as ") + kExamples[static_cast<size_t>(rule.kind)]);
  text.check_arguments(parts[1], {});
  const std::string& number = parts[1].name;
  switch (rule.kind) {
    case Kind::kTop:
      rule.level = static_cast<double>(text.whole_number("K", number, 1));
      break;
    case Kind::kAverage:
      rule.level = text.number("K", number);
      if (!(rule.level > 0)) text.fail("K must be above 0, got '" + number + "'");
      break;
    default:
      rule.level = text.fraction("E", number);
  }
  return rule;
}

}  // namespace settrain
