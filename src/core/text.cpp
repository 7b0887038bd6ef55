#include "src/core/text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/evp.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <climits>
#include <cmath>
#include <vector>

namespace settrain {
namespace {

constexpr size_t kLongestQuote = 60;     // bytes
constexpr size_t kLongestMistyped = 80;  // bytes; nobody mistypes more than that, and edit distances cost their product

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

// The number of bytes of the UTF-8 sequence that begins with this byte; 0 where none does.
int sequence_length(unsigned char lead) {
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xF0 && lead < 0xF5) return 4;
  return 0;
}

// The number of bytes of the control character at `i`: 1 for U+0000 to U+001F and U+007F, 2 for U+0080 to U+009F; 0
// where there is none.
size_t control_bytes(const std::string& text, size_t i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  if (byte < 0x20 || byte == 0x7F) return 1;
  return byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0 ? 2 : 0;
}

// Damerau-Levenshtein distance, restricted: no substring is edited twice.
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<size_t>> cost(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) cost[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) cost[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t substitute = cost[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      cost[i][j] = std::min({cost[i - 1][j] + 1, cost[i][j - 1] + 1, substitute});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        cost[i][j] = std::min(cost[i][j], cost[i - 2][j - 2] + 1);
      }
    }
  }
  return cost[a.size()][b.size()];
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

size_t count_characters(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string first_characters(const std::string& text, size_t count) {
  const auto end =
      std::find_if(text.begin(), text.end(), [&](char byte) { return begins_character(byte) && count-- == 0; });
  return {text.begin(), end};
}

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::string printable(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size();) {
    const size_t control = control_bytes(text, i);
    plain += control > 0 ? '?' : text[i];
    i += std::max<size_t>(control, 1);
  }
  return plain;
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

std::string replace_characters(std::string_view text, const std::map<char, std::string_view>& replacements) {
  std::string replaced;
  for (const char& byte : text) {
    const auto found = replacements.find(byte);
    replaced += found == replacements.end() ? std::string_view(&byte, 1) : found->second;
  }
  return replaced;
}

std::string escape_html(std::string_view text) {
  return replace_characters(text, {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}});
}

std::string lower_case(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

std::string_view shell_part(std::string_view path) {
  const std::string_view part = path.substr(0, path.find('/'));
  if (part == "~") return part;
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  const bool is_variable = part.size() > 1 && part[0] == '$' && std::all_of(part.begin() + 1, part.end(), in_name);
  return is_variable ? part : std::string_view();
}

std::string shell_hint(std::string_view path) {
  const std::string_view part = shell_part(path);
  return part.empty() ? "" : fmt::format("; {} is not replaced here, write the folder's own path", part);
}

std::string in_config_words(std::string_view path) {
  const std::string_view part = shell_part(path);
  if (part.empty()) return std::string(path);
  return fmt::format("${{env:{}}}{}", part == "~" ? "HOME" : part.substr(1), path.substr(part.size()));
}

std::string join(std::span<const std::string> texts, std::string_view separator) {
  return fmt::format("{}", fmt::join(texts, separator));
}

std::string join_first(std::span<const std::string> texts, size_t shown, std::string_view separator) {
  if (texts.size() <= shown) return join(texts, separator);
  return fmt::format("{} and {} more", join(texts.first(shown), separator),
                     format_count(std::ssize(texts.subspan(shown))));
}

std::string format_duration(double seconds) {
  constexpr double kLongest = 10'000.0 * 86'400;
  if (!(seconds >= 0 && seconds <= kLongest)) return "?";
  const int64_t total = std::llround(seconds);
  const int64_t days = total / 86'400, hours = total / 3'600 % 24, minutes = total / 60 % 60, rest = total % 60;
  if (days > 0) return fmt::format("{}d {:02}h {:02}m", days, hours, minutes);
  if (hours > 0) return fmt::format("{}h {:02}m {:02}s", hours, minutes, rest);
  if (minutes > 0) return fmt::format("{}m {:02}s", minutes, rest);
  return fmt::format("{}s", rest);
}

std::string format_count(int64_t count) {
  std::string text = std::to_string(count);
  const size_t first_digit = count < 0 ? 1 : 0;
  for (size_t place = text.size(); place > first_digit + 3;) text.insert(place -= 3, 1, ',');
  return text;
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // From 1023.95 on, one decimal would show 1024.0.
  for (; value >= 1023.95 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string did_you_mean(std::string_view given, std::span<const std::string> names, const std::string& prefix) {
  if (given.size() > kLongestMistyped) return "";
  std::string nearest;
  size_t smallest = 0;
  for (const std::string& name : names) {
    const size_t distance = edit_distance(given, name);
    const size_t allowed = std::max<size_t>(2, std::max(given.size(), name.size()) / 3);
    if (distance <= allowed && (nearest.empty() || distance < smallest)) {
      nearest = name;
      smallest = distance;
    }
  }
  return nearest.empty() ? "" : fmt::format(", did you mean '{}{}'?", prefix, nearest);
}

std::string to_base64(std::span<const uint8_t> bytes) {
  std::string text((bytes.size() + 2) / 3 * 4, '\0');
  EVP_EncodeBlock(reinterpret_cast<uint8_t*>(text.data()), bytes.data(), static_cast<int>(bytes.size()));
  return text;
}

std::optional<std::vector<uint8_t>> from_base64(std::string_view text) {
  if (text.size() % 4 != 0 || text.size() > INT_MAX) return std::nullopt;
  std::vector<uint8_t> bytes(text.size() / 4 * 3);
  const int count =
      EVP_DecodeBlock(bytes.data(), reinterpret_cast<const uint8_t*>(text.data()), static_cast<int>(text.size()));
  if (count != static_cast<int>(bytes.size())) return std::nullopt;
  const size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  bytes.resize(bytes.size() - padding);
  if (to_base64(bytes) != text) return std::nullopt;  // the decoder lets blanks and stray padding pass
  return bytes;
}

}  // namespace settrain
