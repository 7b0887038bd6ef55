#include "metrics/sets/rules/set_rule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <vector>

#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

using Words = std::vector<std::string>;

// In the order of the enumerators.
const Words kKindWords{"top", "average", "error", "average-error", "conformal"};
const Words kScoreWords{"lac", "aps", "raps", "saps", "pas", "wpas", "tree", "risk"};
const Words kTuningWords{"none", "size", "strata"};
const Words kThresholdWords{"marginal", "classwise", "superclass", "interpolated", "rc3p", "clustered", "fuzzy"};

/// key=value in parentheses; without `=` the key is empty.
struct RuleArgument {
  std::string key, value;
};

/// A part of a rule's name between two colons: "conformal:raps(k=5):0.1" has three.
struct RulePart {
  std::string name;
  std::vector<RuleArgument> arguments;

  /// The value of an argument, or null. The first argument without a key is called "".
  const std::string* argument(std::string_view key) const {
    const auto found = std::ranges::find(arguments, key, &RuleArgument::key);
    return found == arguments.end() ? nullptr : &found->value;
  }
};

/// The pieces between the `separator`s that stand outside of parentheses; nothing where these do not match.
std::optional<std::vector<std::string_view>> pieces_of(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  bool inside = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '(' || text[i] == ')') {
      if (inside == (text[i] == '(')) return std::nullopt;
      inside = !inside;
    } else if (text[i] == separator && !inside) {
      pieces.push_back(text.substr(begin, i - begin));
      begin = i + 1;
    }
  }
  if (inside) return std::nullopt;
  pieces.push_back(text.substr(begin));
  return pieces;
}

RulePart part_of(std::string_view text) {
  const size_t open = text.find('(');
  RulePart part{std::string(text.substr(0, open)), {}};
  if (open == std::string_view::npos) return part;
  const std::string_view inner = text.substr(open + 1, text.size() - open - 2);
  const auto arguments = pieces_of(inner, ',');
  for (const std::string_view argument : *arguments) {
    const size_t equals = argument.find('=');
    const bool has_key = equals != std::string_view::npos;
    part.arguments.push_back({std::string(argument.substr(0, has_key ? equals : 0)),
                              std::string(argument.substr(has_key ? equals + 1 : 0))});
  }
  return part;
}

/// A rule's name as it is read. Its functions throw ConfigErrors that quote the name.
class RuleText {
 public:
  explicit RuleText(std::string_view text) : text_(text) {
    if (!is_utf8(text_)) fail("it is not UTF-8");
    if (text_ != printable(text_)) fail("it has control characters");  // the name is printed as it is
    const auto pieces = pieces_of(text_, ':');
    if (!pieces) fail("its parentheses do not match");
    for (const std::string_view piece : *pieces) {
      if (piece.find('(') != std::string_view::npos && piece.find(')') != piece.size() - 1) {
        fail(in_quotes(piece) + " goes on behind its parentheses");
      }
      parts_.push_back(part_of(piece));
    }
  }

  const std::vector<RulePart>& parts() const { return parts_; }

  [[noreturn]] void fail(const std::string& what) const {
    throw ConfigError(fmt::format("rule {}: {}", in_quotes(text_), what));
  }

  /// Says that `word` is none of the `words` which may stand at its place, and names the nearest. `place`: "a score".
  [[noreturn]] void fail_unknown(std::string_view place, std::string_view word, const Words& words) const {
    fail(fmt::format("{} is not {}{}; there are {}", in_quotes(word), place, did_you_mean(word, words),
                     join(words, ", ")));
  }

  /// The enumerator that `name` stands for: `words` are in the order of the enumerators.
  template <class Enum>
  Enum enumerator(std::string_view place, const std::string& name, const Words& words) const {
    const auto found = std::find(words.begin(), words.end(), name);
    if (found == words.end()) fail_unknown(place, name, words);
    return static_cast<Enum>(found - words.begin());
  }

  /// Fails where the part has an argument or a parenthesis that it does not take.
  void check_arguments(const RulePart& part, const Words& keys) const {
    for (auto argument = part.arguments.begin(); argument != part.arguments.end(); ++argument) {
      const auto& [key, value] = *argument;
      if (keys.empty()) fail(in_quotes(part.name) + " takes nothing in parentheses");
      if (std::ranges::count(keys, key) == 0) {
        const std::string& shown = key.empty() ? value : key;
        if (std::ranges::count(keys, shown) > 0) {
          fail(fmt::format("{} of {} has no value: write {}=VALUE", in_quotes(shown), in_quotes(part.name), shown));
        }
        fail_unknown("a parameter of '" + part.name + "'", shown, keys);
      }
      const auto same = [&](const RuleArgument& other) { return other.key == argument->key; };
      if (std::any_of(part.arguments.begin(), argument, same)) {
        fail(fmt::format("{} has {} twice", in_quotes(part.name), in_quotes(key)));
      }
    }
  }

  /// `what` names the number in messages. The number is finite.
  double number(std::string_view what, std::string_view text) const {
    const std::optional<double> value = parse_number<double>(text);
    if (!value || !std::isfinite(*value)) {
      fail(fmt::format("{} must be a number, got {}", what, in_quotes(text)));
    }
    return *value;
  }

  int64_t whole_number(std::string_view what, std::string_view text, int64_t least) const {
    const std::optional<int64_t> value = parse_number<int64_t>(text);
    if (!value || *value < least) {
      fail(fmt::format("{} must be a whole number, at least {}, got {}", what, least, in_quotes(text)));
    }
    return *value;
  }

  /// A number in (0, 1).
  double fraction(std::string_view what, std::string_view text) const {
    const double value = number(what, text);
    if (!(value > 0 && value < 1)) {
      fail(fmt::format("{} must lie between 0 and 1, both excluded, got {}", what, in_quotes(text)));
    }
    return value;
  }

 private:
  std::string text_;
  std::vector<RulePart> parts_;
};

/// The parameters that a score takes in parentheses.
Words parameters_of(ConformalScore score) {
  switch (score) {
    case ConformalScore::kAps:
      return {"randomised", "nonempty"};
    case ConformalScore::kRaps:
      return {"lambda", "k", "tune", "randomised", "nonempty"};
    case ConformalScore::kSaps:
      return {"lambda", "randomised", "nonempty"};
    case ConformalScore::kWpas:
      return {"weights", "nonempty"};
    case ConformalScore::kTree:
      return {"nodes", "nonempty"};
    default:
      return {"nonempty"};
  }
}

/// False where the part does not have the argument.
bool read_flag(const RuleText& text, const RulePart& part, const std::string& key) {
  const std::string* value = part.argument(key);
  if (!value) return false;
  if (*value != "true" && *value != "false") text.fail(key + " must be true or false, got '" + *value + "'");
  return *value == "true";
}

double default_lambda(ConformalScore score) {
  return score == ConformalScore::kRaps ? kRapsLambda : score == ConformalScore::kSaps ? kSapsLambda : 0;
}

int64_t default_k(ConformalScore score) {
  return score == ConformalScore::kRaps ? kRapsK : 0;
}

void read_score(const RuleText& text, const RulePart& part, SetRule& rule) {
  rule.score = text.enumerator<ConformalScore>("a conformal score", part.name, kScoreWords);
  text.check_arguments(part, parameters_of(rule.score));
  rule.lambda = default_lambda(rule.score);
  rule.k = default_k(rule.score);
  rule.randomised = read_flag(text, part, "randomised");
  rule.nonempty = read_flag(text, part, "nonempty");
  if (const std::string* value = part.argument("lambda")) {
    rule.lambda = text.number("lambda", *value);
    if (rule.lambda < 0) text.fail("lambda must be at least 0, got '" + *value + "'");
  }
  if (const std::string* value = part.argument("k")) rule.k = text.whole_number("k", *value, 0);
  if (const std::string* value = part.argument("tune")) {
    rule.tuning = text.enumerator<RapsTuning>("what raps is tuned for", *value, kTuningWords);
    if (rule.tuning != RapsTuning::kNone && (part.argument("lambda") || part.argument("k")))
      text.fail("raps takes lambda and k, or tunes them");
  }
  if (const std::string* value = part.argument("weights")) rule.weights = *value;
  if (rule.score == ConformalScore::kWpas && rule.weights.empty()) {
    text.fail("wpas needs a file of class weights: wpas(weights=FILE)");
  }
  if (const std::string* value = part.argument("nodes")) rule.nodes = text.whole_number("nodes", *value, 1);
  if (rule.nodes > kMostAnswerNodes)
    text.fail(fmt::format("nodes must be at most {}, got {}", kMostAnswerNodes, rule.nodes));
  if (rule.score == ConformalScore::kTree && rule.nodes == 0) {
    text.fail("tree needs the largest number of nodes of an answer: tree(nodes=3)");
  }
}

void read_threshold(const RuleText& text, const RulePart& part, SetRule& rule) {
  rule.threshold = text.enumerator<ConformalThreshold>("a kind of threshold", part.name, kThresholdWords);
  if (rule.score == ConformalScore::kTree && rule.threshold != ConformalThreshold::kMarginal) {
    text.fail(
        "tree promises something of all images together alone: an answer by nodes has classes of many thresholds");
  }
  if (rule.score == ConformalScore::kRisk && rule.threshold != ConformalThreshold::kMarginal) {
    text.fail("risk promises something of all images together alone: an image has labels of many classes");
  }
  switch (rule.threshold) {
    case ConformalThreshold::kInterpolated: {
      text.check_arguments(part, {""});
      const std::string* tau = part.argument("");
      if (!tau) text.fail("interpolated needs its TAU: interpolated(0.9)");
      rule.tau = text.number("TAU", *tau);
      if (!(rule.tau >= 0 && rule.tau <= 1)) text.fail("TAU must lie in [0, 1], got '" + *tau + "'");
      if (rule.score != ConformalScore::kLac) text.fail("interpolated is for the score lac, whose largest value is 1");
      break;
    }
    case ConformalThreshold::kFuzzy: {
      text.check_arguments(part, {"", "share"});
      const std::string* sigma = part.argument("");
      if (!sigma) text.fail("fuzzy needs its SIGMA: fuzzy(1e-5)");
      rule.sigma = text.number("SIGMA", *sigma);
      if (!(rule.sigma > 0)) text.fail("SIGMA must be above 0, got '" + *sigma + "'");
      break;
    }
    case ConformalThreshold::kClustered:
      text.check_arguments(part, {"clusters", "share"});
      if (const auto* value = part.argument("clusters")) rule.clusters = text.whole_number("clusters", *value, 2);
      break;
    default:
      text.check_arguments(part, {});
  }
  if (const std::string* value = part.argument("share")) rule.share = text.fraction("share", *value);
}

std::string with_arguments(const std::string& name, const Words& arguments) {
  return arguments.empty() ? name : fmt::format("{}({})", name, join(arguments, ","));
}

std::string score_name(const SetRule& rule) {
  Words arguments;
  if (rule.lambda != default_lambda(rule.score)) arguments.push_back(fmt::format("lambda={}", rule.lambda));
  if (rule.k != default_k(rule.score)) arguments.push_back(fmt::format("k={}", rule.k));
  if (rule.tuning != RapsTuning::kNone) arguments.push_back("tune=" + kTuningWords[static_cast<size_t>(rule.tuning)]);
  if (rule.randomised) arguments.push_back("randomised=true");
  if (!rule.weights.empty()) arguments.push_back("weights=" + rule.weights);
  if (rule.nodes) arguments.push_back(fmt::format("nodes={}", rule.nodes));
  if (rule.nonempty) arguments.push_back("nonempty=true");
  return with_arguments(kScoreWords[static_cast<size_t>(rule.score)], arguments);
}

std::string threshold_name(const SetRule& rule) {
  Words arguments;
  if (rule.threshold == ConformalThreshold::kInterpolated) arguments.push_back(fmt::format("{}", rule.tau));
  if (rule.threshold == ConformalThreshold::kFuzzy) arguments.push_back(fmt::format("{}", rule.sigma));
  if (rule.clusters) arguments.push_back(fmt::format("clusters={}", rule.clusters));
  if (rule.share > 0) arguments.push_back(fmt::format("share={}", rule.share));
  return with_arguments(kThresholdWords[static_cast<size_t>(rule.threshold)], arguments);
}

}  // namespace

std::string SetRule::name() const {
  const std::string& first = kKindWords[static_cast<size_t>(kind)];
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
  rule.kind = text.enumerator<Kind>("a kind of rule", parts[0].name, kKindWords);
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
