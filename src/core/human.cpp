#include "src/core/human.h"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace settrain {

std::string format_duration(double seconds) {
  constexpr double kLongest = 10'000.0 * 86'400;
  if (!(seconds >= 0 && seconds <= kLongest)) return "?";
  const int64_t total = std::llround(seconds);
  const int64_t days = total / 86'400, hours = total / 3'600 % 24, minutes = total / 60 % 60, rest = total % 60;
  if (days > 0) return fmt::format("{}d {:02}h {:02}m", days, hours, minutes);
  if (hours > 0) return fmt::format("{}h {:02}m {:02}s", hours, minutes, rest);
  if (minutes > 0) return fmt::format("{}m {:02}s", minutes, rest);
  return fmt::format("{}s", rest);
}

std::string format_count(int64_t count) {
  std::string text = std::to_string(count);
  const size_t first_digit = count < 0 ? 1 : 0;
  for (size_t place = text.size(); place > first_digit + 3;) {
    place -= 3;
    text.insert(place, 1, ',');
  }
  return text;
}

std::string format_bytes(uint64_t bytes) {
  if (bytes < 1024) return fmt::format("{} B", bytes);
  constexpr std::array kUnits{"KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  double value = static_cast<double>(bytes) / 1024;
  size_t unit = 0;
  // 1023.95 would be printed as 1024.0.
  while (value >= 1023.95 && unit + 1 < kUnits.size()) {
    value /= 1024;
    ++unit;
  }
  return fmt::format("{:.1f} {}", value, kUnits[unit]);
}

}  // namespace settrain
