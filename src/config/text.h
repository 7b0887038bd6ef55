// Small helpers for text that came from a user: UTF-8, and quoting for messages.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace settrain::config {

/// Decodes the code point at `position` and moves past it; nullopt (and no move) where the bytes are not UTF-8.
std::optional<char32_t> next_code_point(std::string_view text, size_t& position);

bool is_utf8(std::string_view text);

/// 'text' for an error message: on one line, and cut where it is long.
std::string in_quotes(std::string_view text);

/// The text on one line, control characters as \xNN.
std::string on_one_line(std::string_view text);

/// ", did you mean 'optimizer.lr'?", or an empty string for an empty name.
std::string did_you_mean(std::string_view name);

/// "a, b, c".
std::string join(std::span<const std::string> texts, std::string_view separator);

}  // namespace settrain::config
