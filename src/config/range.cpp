#include "src/config/range.h"

#include <fmt/format.h>

#include <algorithm>

#include "src/config/text.h"
#include "src/core/suggest.h"

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
  return in_quotes(value) + " is not one of " + join(key.choices, ", ") +
         did_you_mean(nearest_name(value, key.choices));
}

struct AllAccepted {
  const Key& key;

  template <class T>
  bool operator()(const std::vector<T>& elements) const {
    return std::all_of(elements.begin(), elements.end(), [this](const T& element) { return (*this)(element); });
  }
  bool operator()(int64_t value) const {
    const auto means = [value](const auto& word) { return word.second == value; };
    return std::any_of(key.words.begin(), key.words.end(), means) || bounds_error(key, value).empty();
  }
  bool operator()(const std::string& text) const {
    // What a ${...} becomes is known only when a file is loaded.
    return text.find("${") != std::string::npos || choice_error(key, text).empty();
  }
  bool operator()(double value) const { return bounds_error(key, value).empty(); }
  bool operator()(bool) const { return true; }
};

struct WholeError {
  const Key& key;

  template <class T>
  std::string operator()(const std::vector<T>& list) const {
    if (key.non_empty && list.empty()) return kEmpty;
    for (auto element = list.begin(); key.distinct_elements && element != list.end(); ++element) {
      if (std::find(list.begin(), element, *element) != element) return fmt::format("names {} twice", *element);
    }
    return "";
  }
  std::string operator()(const std::string& text) const { return key.non_empty && text.empty() ? kEmpty : ""; }
  std::string operator()(bool) const { return ""; }
  std::string operator()(int64_t) const { return ""; }
  std::string operator()(double) const { return ""; }

  static constexpr const char* kEmpty = "must not be empty";
};

}  // namespace

std::string bounds_text(const Key& key) {
  std::string text;
  if (key.minimum) text += fmt::format("{} {}", key.minimum->included ? ">=" : ">", key.minimum->value);
  if (key.maximum) {
    text += fmt::format("{}{} {}", text.empty() ? "" : " and ", key.maximum->included ? "<=" : "<", key.maximum->value);
  }
  return text;
}

std::string element_error(const Key& key, const Value& element) {
  if (const auto* integer = std::get_if<int64_t>(&element)) return bounds_error(key, *integer);
  if (const auto* real = std::get_if<double>(&element)) return bounds_error(key, *real);
  if (const auto* text = std::get_if<std::string>(&element)) return choice_error(key, *text);
  return "";
}

std::string whole_error(const Key& key, const Value& value) {
  return std::visit(WholeError{key}, value);
}

bool is_optional(const Key& key) {
  return whole_error(key, key.default_value).empty() && std::visit(AllAccepted{key}, key.default_value);
}

}  // namespace settrain::config
