// Texts in gnuplot's scripts.
#pragma once

#include <cstddef>
#include <string>

namespace settrain {

/// `text` with blanks for control characters, line breaks among them.
std::string one_line(std::string text);

/// `text` as a string of gnuplot's, whatever it holds; to be drawn `noenhanced`.
std::string gnuplot_string(const std::string& text);

/// The same for the label of a tic, in which % stands for the tic's number; long ones are cut.
std::string tic_string(const std::string& text);

/// The text, or its first characters and an ellipsis.
std::string shortened(const std::string& text, size_t characters);

/// The text with line breaks at blanks, so that a line has so many characters or fewer; a longer word has a line of its
/// own.
std::string wrapped(const std::string& text, size_t characters);

}  // namespace settrain
