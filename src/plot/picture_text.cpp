#include <fmt/format.h>

#include <sstream>
#include <string_view>

#include "src/plot/pictures.h"

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

std::string shortened(const std::string& text, size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && (static_cast<unsigned char>(text[bytes]) & 0xC0) == 0x80) --bytes;  // within a character of UTF-8
  return text.substr(0, bytes) + "\u2026";
}

std::vector<std::string> wrapped(const std::string& text, size_t bytes) {
  std::vector<std::string> lines;
  std::istringstream words(one_line(text));
  for (std::string word; words >> word;) {
    if (!lines.empty() && lines.back().size() + 1 + word.size() <= bytes) {
      lines.back() += ' ' + word;
    } else {
      lines.push_back(word);
    }
  }
  return lines;
}

}  // namespace settrain
