#include "src/core/html.h"

#include <map>

namespace settrain {

std::string escape_html(std::string_view text) {
  static const std::map<char, std::string_view> kReferences{
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}, {'\'', "&#39;"}};
  std::string escaped;
  for (const char c : text) {
    const auto reference = kReferences.find(c);
    if (reference == kReferences.end()) {
      escaped += c;
    } else {
      escaped += reference->second;
    }
  }
  return escaped;
}

}  // namespace settrain
