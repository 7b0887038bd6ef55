#include "metrics/sets/rules/rule_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "src/core/error.h"
#include "src/core/text.h"

namespace settrain {
namespace {

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
    if (equals == std::string_view::npos) {
      part.arguments.push_back({"", std::string(argument)});
    } else {
      part.arguments.push_back({std::string(argument.substr(0, equals)), std::string(argument.substr(equals + 1))});
    }
  }
  return part;
}

}  // namespace

RuleText::RuleText(std::string_view text) : text_(text) {
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

void RuleText::fail(const std::string& what) const {
  throw ConfigError(fmt::format("rule {}: {}", in_quotes(text_), what));
}

void RuleText::fail_unknown(std::string_view place, std::string_view word, std::span<const std::string> words) const {
  fail(fmt::format("{} is not {}{}; there are {}", in_quotes(word), place, did_you_mean(word, words),
                   join(words, ", ")));
}

void RuleText::check_arguments(const RulePart& part, std::span<const std::string> keys) const {
  for (auto argument = part.arguments.begin(); argument != part.arguments.end(); ++argument) {
    const auto same = [&](const RuleArgument& other) { return other.key == argument->key; };
    if (keys.empty()) fail(in_quotes(part.name) + " takes nothing in parentheses");
    if (std::find(keys.begin(), keys.end(), argument->key) == keys.end()) {
      const std::string shown = argument->key.empty() ? argument->value : argument->key;
      if (std::find(keys.begin(), keys.end(), shown) != keys.end()) {
        fail(fmt::format("{} of {} has no value: write {}=VALUE", in_quotes(shown), in_quotes(part.name), shown));
      }
      fail_unknown("a parameter of '" + part.name + "'", shown, keys);
    }
    if (std::find_if(part.arguments.begin(), argument, same) != argument) {
      fail(fmt::format("{} has {} twice", in_quotes(part.name), in_quotes(argument->key)));
    }
  }
}

const std::string* RuleText::argument(const RulePart& part, std::string_view key) const {
  for (const RuleArgument& argument : part.arguments) {
    if (argument.key == key) return &argument.value;
  }
  return nullptr;
}

double RuleText::number(std::string_view what, std::string_view text) const {
  const std::optional<double> value = parse_number<double>(text);
  if (!value || !std::isfinite(*value)) {
    fail(fmt::format("{} must be a number, got {}", what, in_quotes(text)));
  }
  return *value;
}

int64_t RuleText::whole_number(std::string_view what, std::string_view text, int64_t least) const {
  const std::optional<int64_t> value = parse_number<int64_t>(text);
  if (!value || *value < least) {
    fail(fmt::format("{} must be a whole number, at least {}, got {}", what, least, in_quotes(text)));
  }
  return *value;
}

double RuleText::fraction(std::string_view what, std::string_view text) const {
  const double value = number(what, text);
  if (!(value > 0 && value < 1)) {
    fail(fmt::format("{} must lie between 0 and 1, both excluded, got {}", what, in_quotes(text)));
  }
  return value;
}

}  // namespace settrain
