#include "src/config/value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>

#include "src/core/text.h"

namespace settrain::config {
namespace {

constexpr size_t kLongestAdvice = 60;  // bytes

bool is_plain(std::string_view text) {
  // YAML 1.1 takes these words for a boolean or for nothing.
  constexpr std::array<std::string_view, 9> kReserved = {"true", "false", "yes", "no", "on", "off", "null", "y", "n"};
  if (text.empty()) return false;
  const auto is_letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/';
  };
  const auto is_inner = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '+';
  };
  if (!is_letter(text.front()) || !std::all_of(text.begin(), text.end(), is_inner)) return false;
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return std::find(kReserved.begin(), kReserved.end(), lower) == kReserved.end();
}

std::string escaped(char32_t code, std::string_view bytes) {
  switch (code) {
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    case '\n':
      return "\\n";
    case '\t':
      return "\\t";
    case '\r':
      return "\\r";
    default:
      break;
  }
  const bool control = code < 0x20 || (code >= 0x7F && code < 0xA0);
  const bool line_break_or_mark = code == 0x2028 || code == 0x2029 || code == 0xFEFF;
  if (control || line_break_or_mark) return fmt::format("\\u{:04X}", static_cast<uint32_t>(code));
  return std::string(bytes);
}

struct Formatter {
  const Key& key;
  bool escape;  // the ${ of texts

  std::string operator()(bool value) const { return value ? "true" : "false"; }
  std::string operator()(int64_t value) const { return word_or(value, std::to_string(value)); }
  std::string operator()(double value) const { return word_or(value, format_real(value)); }
  std::string operator()(const std::string& value) const {
    return yaml_text(escape ? escape_references(value) : value);
  }

  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::vector<std::string> texts;
    for (const T& value : values) texts.push_back((*this)(value));
    return fmt::format("[{}]", join(texts, ", "));
  }

 private:
  std::string word_or(const Value& value, const std::string& digits) const {
    const std::string* word = word_for(key, value);
    return word ? yaml_text(*word) : digits;
  }
};

void refuse_quotes(const std::string& text, bool quoted, const std::string& type) {
  if (quoted) throw InvalidValue(in_quotes(text) + " in quotes is text, not " + type + "; remove the quotes");
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

std::string_view without_sign(std::string_view text) {
  if (!text.empty() && (text.front() == '+' || text.front() == '-')) text.remove_prefix(1);
  return text;
}

// Whether the text is digits with an optional point and exponent; std::from_chars would take "inf" and "nan" too.
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

// The number of a decimal text; nullopt where it is too large or too small for T.
template <class T>
std::optional<T> parse_decimal(std::string_view text) {
  return parse_number<T>(text.starts_with('+') ? text.substr(1) : text);
}

// ", write 1000" for 1e3, 1000.0 and 01000.
std::string integer_advice(std::string_view text) {
  if (!is_decimal(text)) return "";
  const std::optional<double> value = parse_decimal<double>(text);
  constexpr double kExact = 9007199254740992.0;  // 2^53
  if (!value || std::trunc(*value) != *value || std::abs(*value) > kExact) return "";
  return fmt::format(", write {}", static_cast<int64_t>(*value));
}

bool to_bool(const std::string& text, bool quoted) {
  refuse_quotes(text, quoted, "a boolean");
  if (text == "true") return true;
  if (text == "false") return false;
  std::string lower = text;
  std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return std::tolower(c); });
  constexpr std::array<std::string_view, 5> kMeansTrue = {"yes", "on", "y", "true", "1"};
  constexpr std::array<std::string_view, 5> kMeansFalse = {"no", "off", "n", "false", "0"};
  std::string advice = "true or false";
  if (std::find(kMeansTrue.begin(), kMeansTrue.end(), lower) != kMeansTrue.end()) advice = "true";
  if (std::find(kMeansFalse.begin(), kMeansFalse.end(), lower) != kMeansFalse.end()) advice = "false";
  throw InvalidValue(in_quotes(text) + " is not a boolean, write " + advice);
}

// " or 'auto', did you mean 'auto'?": the end of the message on a text that is no number. `advice` takes the place of
// the nearest word where there is one.
std::string or_words(const Key& key, const std::string& text, const std::string& advice) {
  std::vector<std::string> words;
  std::string others;
  for (const auto& [word, meaning] : key.words) {
    words.push_back(word);
    others += fmt::format(" or '{}'", word);
  }
  return others + (advice.empty() ? did_you_mean(text, words) : advice);
}

int64_t to_integer(const Key& key, const std::string& text, bool quoted) {
  refuse_quotes(text, quoted, "an integer");
  const std::string_view digits = without_sign(text);
  if (!is_digits(digits) || (digits.size() > 1 && digits.front() == '0')) {
    throw InvalidValue(in_quotes(text) + " is not an integer" + or_words(key, text, integer_advice(text)));
  }
  const std::optional<int64_t> value = parse_decimal<int64_t>(text);
  if (!value) throw InvalidValue(in_quotes(text) + " does not fit in 64 bits");
  return *value;
}

double to_real(const Key& key, const std::string& text, bool quoted) {
  refuse_quotes(text, quoted, "a number");
  if (!is_decimal(text)) {
    const std::string_view bare = without_sign(text);
    constexpr std::array<std::string_view, 10> kNotFinite = {".inf", ".Inf", ".INF", "inf", "Inf",
                                                             ".nan", ".NaN", ".NAN", "nan", "NaN"};
    const bool not_finite = std::find(kNotFinite.begin(), kNotFinite.end(), bare) != kNotFinite.end();
    throw InvalidValue(in_quotes(text) + (not_finite ? " is not a finite number" : " is not a number") +
                       or_words(key, text, ""));
  }
  const std::optional<double> value = parse_decimal<double>(text);
  if (!value) throw InvalidValue(in_quotes(text) + " is too large or too small for a double");
  return *value;
}

template <class T>
bool holds(const Key& key) {
  return std::holds_alternative<T>(key.default_value);
}

template <class List>
Value list_of(const std::vector<Value>& elements) {
  List list;
  for (const Value& element : elements) list.push_back(std::get<typename List::value_type>(element));
  return list;
}

}  // namespace

const std::string* word_for(const Key& key, const Value& value) {
  for (const auto& [word, meaning] : key.words) {
    if (value == Value(meaning) || value == Value(static_cast<double>(meaning))) return &word;
  }
  return nullptr;
}

std::string format_real(double value) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  std::string text(buffer.data(), end);
  // Other YAML readers take 1e-05 for text: their numbers have a point.
  if (text.find('.') == std::string::npos) text.insert(std::min(text.find('e'), text.size()), ".0");
  return text;
}

std::string yaml_text(std::string_view text) {
  if (is_plain(text)) return std::string(text);
  std::string quoted = "\"";
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    const char32_t code = next_code_point(text, position).value();
    quoted += escaped(code, text.substr(start, position - start));
  }
  return quoted + '"';
}

std::string yaml_value(const Key& key, const Value& value) {
  return std::visit(Formatter{key, true}, value);
}

std::string yaml_default(const Key& key) {
  return std::visit(Formatter{key, false}, key.default_value);
}

std::string reference_text(const Key& key, const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  return std::visit(Formatter{key, false}, value);
}

Value to_value(const Key& key, const std::string& text, bool quoted) {
  Value value = text;
  if (holds<bool>(key)) {
    value = to_bool(text, quoted);
  } else if (holds<int64_t>(key) || holds<Integers>(key)) {
    for (const auto& [word, meaning] : key.words) {
      if (text == word) return meaning;
    }
    value = to_integer(key, text, quoted);
  } else if (holds<double>(key) || holds<Reals>(key)) {
    for (const auto& [word, meaning] : key.words) {
      if (text == word) return static_cast<double>(meaning);
    }
    value = to_real(key, text, quoted);
  }
  const std::string error = element_error(key, value);
  if (!error.empty()) throw InvalidValue(error);
  return value;
}

std::optional<Value> read_value(const std::string& path, const Key& key, const YamlNode& node, const Lookup& lookup,
                                Problems& problems) {
  const auto fail = [&](const YamlNode& at, const std::string& message) {
    problems.add(at.origin, path, message);
    return std::nullopt;
  };
  const auto read_scalar = [&](const YamlNode& scalar) -> std::optional<Value> {
    if (!scalar.is(YamlNode::Kind::kScalar)) return fail(scalar, "a list is not one " + type_text(key));
    try {
      const Expanded expanded = expand(scalar.text, lookup);
      // Flow style demands quotes around ${...}; they say nothing about the type.
      return to_value(key, expanded.text, scalar.quoted && !expanded.replaced);
    } catch (const InvalidValue& error) {
      return fail(scalar, error.what());
    } catch (const BrokenReference&) {
      return std::nullopt;
    }
  };
  std::optional<Value> value;
  if (!is_list(key)) {
    value = read_scalar(node);
  } else if (!node.is(YamlNode::Kind::kList)) {
    return fail(node, in_quotes(node.text) + " is not a " + type_text(key) + ", write [" +
                          on_one_line(node.text.substr(0, kLongestAdvice)) + "]");
  } else {
    std::vector<Value> elements;
    for (const YamlNode& element : node.values) {
      if (const std::optional<Value> read = read_scalar(element)) elements.push_back(*read);
    }
    if (elements.size() == node.values.size()) {
      value = holds<Integers>(key) ? list_of<Integers>(elements)
              : holds<Reals>(key)  ? list_of<Reals>(elements)
                                   : list_of<Texts>(elements);
    }
  }
  if (!value) return std::nullopt;
  const std::string error = whole_error(key, *value);
  return error.empty() ? value : fail(node, error);
}

}  // namespace settrain::config
