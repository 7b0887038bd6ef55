// Numbers as people read them.
#pragma once

#include <cstdint>
#include <string>

namespace settrain {

/// Seconds, rounded: "5s", "1m 05s", "1h 02m 05s", "2d 03h 04m". "?" for what is negative, not finite or over 10,000
/// days.
std::string format_duration(double seconds);

/// "1,234,567"
std::string format_count(int64_t count);

/// "512 B", "1.5 KiB", "23.4 MiB", ...
std::string format_bytes(uint64_t bytes);

}  // namespace settrain
