// Text in a picture: how much room it takes, and its lines.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace settrain {

/// Heights of a letter in pixels, of charts' titles, of most of their text, and of what is small. The script sets them.
constexpr double kLargeText = 14.7, kText = 12, kSmallText = 10.7;

/// About how many pixels a text of DejaVu Sans is wide; rather too many.
double text_width(const std::string& text, double height);

/// The text in lines of `width` pixels or less, broken at blanks and at line breaks; a longer word is broken where it
/// must be.
std::vector<std::string> wrapped(const std::string& text, double height, double width);

/// At most so many characters of a text, the last an ellipsis where there are more.
std::string shortened(const std::string& text, size_t characters);

}  // namespace settrain
