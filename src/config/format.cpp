#include "src/config/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "src/config/interpolate.h"
#include "src/config/text.h"

namespace settrain::config {
namespace {

bool is_plain(std::string_view text) {
  // What YAML 1.1 takes for a boolean or for nothing.
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
  std::string operator()(int64_t value) const {
    for (const auto& [word, meaning] : key.words) {
      if (meaning == value) return yaml_text(word);
    }
    return std::to_string(value);
  }
  std::string operator()(double value) const { return format_real(value); }
  std::string operator()(const std::string& value) const {
    return yaml_text(escape ? escape_references(value) : value);
  }

  template <class T>
  std::string operator()(const std::vector<T>& values) const {
    std::vector<std::string> texts;
    for (const T& value : values) texts.push_back((*this)(value));
    return fmt::format("[{}]", join(texts, ", "));
  }
};

}  // namespace

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

}  // namespace settrain::config
