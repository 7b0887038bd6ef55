#include "src/plot/picture_text.h"

#include <fmt/format.h>

#include <string_view>

#include "src/core/table_text.h"
#include "src/core/text.h"

namespace settrain {
namespace {

constexpr size_t kMostOfTic = 28;

}  // namespace

std::string one_line(std::string text) {
  for (char& c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = ' ';
  }
  return text;
}

std::string gnuplot_string(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    // As numbers: what ends the string or means something in it, to gnuplot or to its search for the end of a block.
    const bool is_code =
        static_cast<unsigned char>(c) < 0x20 || std::string_view("\"'\\`{}#\x7f").find(c) != std::string_view::npos;
    quoted += is_code ? fmt::format("\\{:03o}", c) : std::string(1, c);
  }
  return quoted + '"';
}

std::string tic_string(const std::string& text) {
  std::string format;
  for (const char c : shortened(one_line(text), kMostOfTic)) format += c == '%' ? std::string("%%") : std::string(1, c);
  return gnuplot_string(format);
}

std::string shortened(const std::string& text, size_t characters) {
  return count_characters(text) <= characters ? text : first_characters(text, characters) + "\u2026";
}

std::string wrapped(const std::string& text, size_t characters) {
  std::string lines = wrap_words(one_line(text), characters, 0);
  if (!lines.empty()) lines.pop_back();  // the last line's end
  return lines;
}

}  // namespace settrain
