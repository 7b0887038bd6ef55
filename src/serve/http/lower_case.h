// Names in HTTP are alike in capitals and small letters.
#pragma once

#include <string>
#include <string_view>

namespace settrain {

/// With small ASCII letters for capital ones, whatever the locale.
inline std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

}  // namespace settrain
