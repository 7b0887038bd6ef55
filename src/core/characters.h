// Text in UTF-8, by its characters and not by its bytes.
#pragma once

#include <cstddef>
#include <string>

namespace settrain {

/// How many characters there are, each taken to be one column wide.
size_t count_characters(const std::string& text);

/// The first `count` of them, whole; all where there are fewer.
std::string first_characters(const std::string& text, size_t count);

/// Up to the first line feed.
std::string first_line(const std::string& text);

/// With a question mark for every control character (U+0000 to U+001F, U+007F to U+009F), which a terminal might obey.
std::string printable(const std::string& text);

}  // namespace settrain
