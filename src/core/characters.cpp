#include "src/core/characters.h"

#include <algorithm>

namespace settrain {
namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0) != 0x80;
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

}  // namespace settrain
