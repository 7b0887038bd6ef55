#include "src/core/characters.h"

#include <algorithm>

namespace settrain {
namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
}

// How many bytes a control character takes at `i`: U+0000 to U+001F and U+007F one, U+0080 to U+009F two; 0 where there
// is none.
size_t control_bytes(const std::string& text, size_t i) {
  const auto byte = static_cast<unsigned char>(text[i]);
  if (byte < 0x20 || byte == 0x7F) return 1;
  return byte == 0xC2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xA0 ? 2 : 0;
}

}  // namespace

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

}  // namespace settrain
