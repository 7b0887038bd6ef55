// Helpers for text: characters in UTF-8, quoting, numbers, and names that were mistyped.
#pragma once

#include <charconv>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace settrain {

/// Decodes the code point at `position` and moves past it; nullopt (and no move) where the bytes are not UTF-8.
std::optional<char32_t> next_code_point(std::string_view text, size_t& position);

bool is_utf8(std::string_view text);

/// The number of characters of a text in UTF-8. Each is taken to be one column wide.
size_t count_characters(const std::string& text);

/// The first `count` characters, whole; all where there are fewer.
std::string first_characters(const std::string& text, size_t count);

/// The text up to its first line feed.
std::string first_line(const std::string& text);

/// The text with a question mark for every control character (U+0000 to U+001F, U+007F to U+009F), which a terminal
/// might obey.
std::string printable(const std::string& text);

/// The text on one line, control characters as \xNN.
std::string on_one_line(std::string_view text);

/// 'text' for an error message: on one line, and cut where it is long.
std::string in_quotes(std::string_view text);

/// The text with a replacement for each of these characters: {{'|', "\\|"}}.
std::string replace_characters(std::string_view text, const std::map<char, std::string_view>& replacements);

/// `text` with &, <, >, " and ' as HTML's character references: what an element or a quoted attribute may hold.
std::string escape_html(std::string_view text);

/// The text with the letters A to Z small; other characters stay.
std::string lower_case(std::string_view text);

/// The front of a path that a shell replaces, and settrain does not: "~" of "~/x", "$HOME" of "$HOME/x". Empty for
/// other paths.
std::string_view shell_part(std::string_view path);

/// "; ~ is not replaced here, ..." for the end of an error about a path with a shell_part(), else an empty text.
std::string shell_hint(std::string_view path);

/// The path as a config's value can have it: "${env:HOME}/x" for "~/x".
std::string in_config_words(std::string_view path);

/// "a, b, c".
std::string join(std::span<const std::string> texts, std::string_view separator);

/// "a, b and 3 more": the first `shown` texts.
std::string join_first(std::span<const std::string> texts, size_t shown, std::string_view separator = ", ");

/// The number that the whole text is, as std::from_chars reads it (no blanks, no plus sign); nullopt for any other
/// text, and for a number that T cannot hold.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T number{};
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  return error == std::errc() && rest == end ? std::optional(number) : std::nullopt;
}

/// Seconds, rounded: "5s", "1m 05s", "1h 02m 05s", "2d 03h 04m". "?" for what is negative, not finite or over 10,000
/// days.
std::string format_duration(double seconds);

/// "1,234,567"
std::string format_count(int64_t count);

/// "512 B", "1.5 KiB", "23.4 MiB", ...
std::string format_bytes(uint64_t bytes);

/// ", did you mean 'x'?" for the end of a message, where x is `prefix` and the name with the smallest edit distance to
/// `given` (insertions, deletions, substitutions and swaps of neighbours). An empty text where no name is near enough
/// to be a plausible typo (the distance is more than a third of the longer name's length, and more than 2), and where
/// `given` has more than 80 bytes.
std::string did_you_mean(std::string_view given, std::span<const std::string> names, const std::string& prefix = "");

/// RFC 4648, with padding.
std::string to_base64(std::span<const uint8_t> bytes);
/// Nothing where the text is not what to_base64() writes.
std::optional<std::vector<uint8_t>> from_base64(std::string_view text);

}  // namespace settrain
