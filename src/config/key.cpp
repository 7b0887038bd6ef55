#include "src/config/key.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "src/config/value.h"
#include "src/core/text.h"

namespace settrain::config {
namespace {

template <class Number>
std::string bounds_error(const Key& key, Number number) {
  const auto value = static_cast<double>(number);
  const bool low = key.minimum && (key.minimum->included ? value < key.minimum->value : value <= key.minimum->value);
  const bool high = key.maximum && (key.maximum->included ? value > key.maximum->value : value >= key.maximum->value);
  if (!low && !high) return "";
  std::string text = fmt::format("{} is out of range, must be {}", number, bounds_text(key));
  for (const auto& [word, meaning] : key.words) text += fmt::format(" or '{}'", word);
  return key.unit.empty() ? text : text + " (" + key.unit + ")";
}

std::string choice_error(const Key& key, const std::string& value) {
  if (key.choices.empty() || std::find(key.choices.begin(), key.choices.end(), value) != key.choices.end()) return "";
  return in_quotes(value) + " is not one of " + join(key.choices, ", ") + did_you_mean(value, key.choices);
}

// The elements of a list, or the only one where the value is no list.
std::vector<Value> elements_of(const Value& value) {
  if (const auto* list = std::get_if<Integers>(&value)) return std::vector<Value>(list->begin(), list->end());
  if (const auto* list = std::get_if<Reals>(&value)) return std::vector<Value>(list->begin(), list->end());
  if (const auto* list = std::get_if<Texts>(&value)) return std::vector<Value>(list->begin(), list->end());
  return {value};
}

}  // namespace

std::string type_text(const Key& key) {
  // In the order of Value's alternatives.
  constexpr std::array<const char*, std::variant_size_v<Value>> kTypes = {
      "boolean", "integer", "number", "text", "list of integers", "list of numbers", "list of texts"};
  std::string text = kTypes[key.default_value.index()];
  for (const auto& [word, meaning] : key.words) text += " or " + word;
  return key.changes ? text + " or {from, to, curve}" : text;
}

Keys curve_keys(const Key& key) {
  Key from, to = key, curve;
  to.name = key.name + ".to";
  to.help = "Value in the last epoch.";
  to.changes = false;
  to.words.clear();
  from = to;
  from.name = key.name + ".from";
  from.help = "Value in the first epoch.";
  from.owner = typeid(void);
  from.assign = nullptr;
  curve.name = key.name + ".curve";
  curve.default_value = "linear";
  curve.help = "Shape of the curve between the two values.";
  curve.choices = {"linear", "cosine", "exponential"};
  return {from, to, curve};
}

std::string bounds_text(const Key& key) {
  std::string text;
  if (key.minimum) text += fmt::format("{} {}", key.minimum->included ? ">=" : ">", key.minimum->value);
  if (key.maximum) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " and ", key.maximum->included ? "<=" : "<", key.maximum->value);
  }
  return text;
}

bool is_list(const Key& key) {
  return key.default_value.index() >= Value(Integers{}).index();
}

std::string element_error(const Key& key, const Value& element) {
  if (const auto* integer = std::get_if<int64_t>(&element)) return bounds_error(key, *integer);
  if (const auto* real = std::get_if<double>(&element)) return bounds_error(key, *real);
  if (const auto* text = std::get_if<std::string>(&element)) return choice_error(key, *text);
  return "";
}

std::string whole_error(const Key& key, const Value& value) {
  const std::vector<Value> elements = elements_of(value);
  if (key.non_empty && (elements.empty() || value == Value(std::string()))) return "must not be empty";
  for (auto element = elements.begin(); key.distinct_elements && element != elements.end(); ++element) {
    if (std::find(elements.begin(), element, *element) != element) {
      return std::visit([](const auto& twice) { return fmt::format("names {} twice", twice); }, *element);
    }
  }
  return "";
}

bool is_optional(const Key& key) {
  const auto is_accepted = [&key](const Value& element) {
    if (word_for(key, element)) return true;
    // The text that replaces a ${...} is known only when a file is loaded.
    const auto* text = std::get_if<std::string>(&element);
    return (text && text->find("${") != std::string::npos) || element_error(key, element).empty();
  };
  const std::vector<Value> elements = elements_of(key.default_value);
  return whole_error(key, key.default_value).empty() && std::all_of(elements.begin(), elements.end(), is_accepted);
}

}  // namespace settrain::config
