#include "src/config/text.h"

#include <fmt/format.h>

#include <cstdint>

namespace settrain::config {
namespace {

constexpr size_t kLongestQuote = 60;  // bytes

int sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

}  // namespace

std::optional<char32_t> next_code_point(std::string_view text, size_t& position) {
  const auto lead = static_cast<unsigned char>(text[position]);
  const int length = sequence_length(lead);
  if (length == 0 || position + length > text.size()) return std::nullopt;
  constexpr unsigned char kLeadBits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
  char32_t code = lead & kLeadBits[length];
  for (int i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[position + i]);
    if ((byte & 0xC0) != 0x80) return std::nullopt;
    code = (code << 6) | (byte & 0x3F);
  }
  const bool overlong = (length == 3 && code < 0x800) || (length == 4 && code < 0x10000);
  const bool surrogate = code >= 0xD800 && code < 0xE000;
  if (overlong || surrogate || code > 0x10FFFF) return std::nullopt;
  position += length;
  return code;
}

bool is_utf8(std::string_view text) {
  size_t position = 0;
  while (position < text.size()) {
    if (!next_code_point(text, position)) return false;
  }
  return true;
}

std::string on_one_line(std::string_view text) {
  std::string line;
  for (size_t position = 0; position < text.size();) {
    const size_t start = position;
    const auto code = next_code_point(text, position);
    if (!code) position = start + 1;
    if (code && *code >= 0x20 && (*code < 0x7F || *code >= 0xA0)) {
      line += text.substr(start, position - start);
    } else {
      line += fmt::format("\\x{:02X}", code ? static_cast<uint32_t>(*code) : static_cast<unsigned char>(text[start]));
    }
  }
  return line;
}

std::string in_quotes(std::string_view text) {
  if (text.size() <= kLongestQuote) return fmt::format("'{}'", on_one_line(text));
  size_t end = 0;
  for (size_t position = 0; position < kLongestQuote; end = position) {
    if (!next_code_point(text, position)) ++position;
  }
  return fmt::format("'{}...'", on_one_line(text.substr(0, end)));
}

std::string did_you_mean(std::string_view name) {
  return name.empty() ? "" : fmt::format(", did you mean '{}'?", name);
}

std::string join(std::span<const std::string> texts, std::string_view separator) {
  std::string joined;
  for (const std::string& text : texts) {
    if (!joined.empty()) joined += separator;
    joined += text;
  }
  return joined;
}

}  // namespace settrain::config
