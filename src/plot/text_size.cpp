#include "src/plot/text_size.h"

#include <sstream>
#include <string_view>

namespace settrain {
namespace {

// Bytes of the UTF-8 character that begins there.
size_t character_at(const std::string& text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  return end - at;
}

}  // namespace

double text_width(const std::string& text, double height) {
  double widths = 0;
  for (size_t at = 0; at < text.size(); at += character_at(text, at)) {
    const char c = text[at];
    if (std::string_view(" ijlI.,:;'|!").find(c) != std::string_view::npos) {
      widths += 0.34;
    } else if (std::string_view("frt()[]-/\"").find(c) != std::string_view::npos) {
      widths += 0.46;
    } else if (std::string_view("mwMW%@").find(c) != std::string_view::npos || static_cast<unsigned char>(c) >= 0xE3) {
      widths += 1;  // from 0xE3 on the first bytes of Chinese, Japanese and Korean
    } else {
      widths += c >= 'A' && c <= 'Z' ? 0.74 : 0.64;
    }
  }
  return widths * height;
}

std::vector<std::string> wrapped(const std::string& text, double height, double width) {
  std::vector<std::string> lines;
  std::istringstream paragraphs(text);
  for (std::string paragraph; std::getline(paragraphs, paragraph);) {
    std::istringstream words(paragraph);
    std::string line;
    for (std::string word; words >> word;) {
      if (!line.empty()) word.insert(0, 1, ' ');
      if (!line.empty() && text_width(line + word, height) > width) {
        lines.push_back(line);
        line.clear();
        word.erase(0, 1);
      }
      line += word;
      while (text_width(line, height) > width) {
        size_t end = character_at(line, 0);
        while (text_width(line.substr(0, end + character_at(line, end)), height) <= width)
          end += character_at(line, end);
        if (end >= line.size()) break;
        lines.push_back(line.substr(0, end));
        line.erase(0, end);
      }
    }
    if (!line.empty()) lines.push_back(line);
  }
  return lines;
}

std::string shortened(const std::string& text, size_t characters) {
  size_t at = 0, end = 0;
  for (size_t count = 0; at < text.size(); at += character_at(text, at)) {
    if (++count == characters) end = at;
    if (count > characters) return text.substr(0, end) + "\u2026";
  }
  return text;
}

}  // namespace settrain
