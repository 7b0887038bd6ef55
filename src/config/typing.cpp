#include "src/config/typing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>

#include "src/config/text.h"
#include "src/core/suggest.h"

namespace settrain::config {
namespace {

void refuse_quotes(const Scalar& scalar, const std::string& type) {
  if (scalar.quoted)
    throw InvalidValue(in_quotes(scalar.text) + " in quotes is text, not " + type + "; remove the quotes");
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  return text;
}

// Digits with an optional point and exponent; std::from_chars alone would take "inf" and "1.5x" too.
bool is_decimal(std::string_view text) {
  text = without_sign(text);
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    if (!is_digits(without_sign(text.substr(exponent + 1)))) return false;
    text = text.substr(0, exponent);
  }
  std::string digits(text);
  if (const size_t point = digits.find('.'); point != std::string::npos) digits.erase(point, 1);
  return is_digits(digits);
}

// nullopt where the number is too large or too small for T.
template <class T>
std::optional<T> from_chars(std::string_view text) {
  if (text.front() == '+') text.remove_prefix(1);
  T value{};
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc{} || result.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

// ", write 1000" for 1e3, 1000.0 and 01000.
std::string integer_advice(std::string_view text) {
  if (!is_decimal(text)) return "";
  const std::optional<double> value = from_chars<double>(text);
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!value || std::trunc(*value) != *value || std::abs(*value) > kExact) return "";
  return fmt::format(", write {}", static_cast<int64_t>(*value));
}

std::string words_of(const Key& key) {
  std::string words;
  for (const auto& [word, meaning] : key.words) words += fmt::format(" or '{}'", word);
  return words;
}

}  // namespace

bool to_bool(const Scalar& scalar) {
  refuse_quotes(scalar, "a boolean");
  if (scalar.text == "true") return true;
  if (scalar.text == "false") return false;
  std::string lower = scalar.text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array<std::string_view, 5> kMeansTrue = {"yes", "on", "y", "true", "1"};
  constexpr std::array<std::string_view, 5> kMeansFalse = {"no", "off", "n", "false", "0"};
  std::string advice = "true or false";
  if (std::find(kMeansTrue.begin(), kMeansTrue.end(), lower) != kMeansTrue.end()) advice = "true";
  if (std::find(kMeansFalse.begin(), kMeansFalse.end(), lower) != kMeansFalse.end()) advice = "false";
  throw InvalidValue(in_quotes(scalar.text) + " is not a boolean, write " + advice);
}

int64_t to_integer(const Scalar& scalar, const Key& key) {
  std::vector<std::string> words;
  for (const auto& [word, meaning] : key.words) {
    if (scalar.text == word) return meaning;
    words.push_back(word);
  }
  refuse_quotes(scalar, "an integer");
  const std::string_view digits = without_sign(scalar.text);
  if (!is_digits(digits) || (digits.size() > 1 && digits.front() == '0')) {
    const std::string advice = integer_advice(scalar.text);
    throw InvalidValue(in_quotes(scalar.text) + " is not an integer" + words_of(key) + advice +
                       (advice.empty() ? did_you_mean(nearest_name(scalar.text, words)) : ""));
  }
  const std::optional<int64_t> value = from_chars<int64_t>(scalar.text);
  if (!value) throw InvalidValue(in_quotes(scalar.text) + " does not fit in 64 bits");
  return *value;
}

double to_real(const Scalar& scalar) {
  refuse_quotes(scalar, "a number");
  if (!is_decimal(scalar.text)) {
    const std::string_view bare = without_sign(scalar.text);
    constexpr std::array<std::string_view, 10> kNotFinite = {".inf", ".Inf", ".INF", "inf", "Inf",
                                                             ".nan", ".NaN", ".NAN", "nan", "NaN"};
    const bool not_finite = std::find(kNotFinite.begin(), kNotFinite.end(), bare) != kNotFinite.end();
    throw InvalidValue(in_quotes(scalar.text) + (not_finite ? " is not a finite number" : " is not a number"));
  }
  const std::optional<double> value = from_chars<double>(scalar.text);
  if (!value) throw InvalidValue(in_quotes(scalar.text) + " is too large or too small for a double");
  return *value;
}

bool is_list(const Key& key) {
  return key.default_value.index() >= Value(Integers{}).index();
}

}  // namespace settrain::config
