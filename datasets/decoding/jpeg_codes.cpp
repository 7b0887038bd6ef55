#include "datasets/decoding/jpeg_codes.h"

#include <algorithm>

namespace settrain::jpeg {
namespace {

constexpr size_t kMostBytes = 4096;  // an MCU of 6 blocks with 64 numbers of at most 31 bits has 1,488

// The number of a coefficient that ends within a look. One that begins with 0 is negative.
int16_t number_in(size_t look, const AcTable::Coefficient& coefficient) {
  const int size = coefficient.length - coefficient.code_length;
  if (size == 0) return 0;
  const int number = static_cast<int>(look >> (kLook - coefficient.length)) & ((1 << size) - 1);
  const bool negative = number >> (size - 1) == 0;
  return static_cast<int16_t>(negative ? number + 1 - (1 << size) : number);
}

}  // namespace

std::optional<Scan> read_scan(const uint8_t* at, const uint8_t* end, size_t intervals) {
  Scan scan;
  scan.bytes.reserve(static_cast<size_t>(end - at) + kMostBytes);
  while (at < end) {
    const auto* mark = static_cast<const uint8_t*>(std::memchr(at, 0xFF, static_cast<size_t>(end - at)));
    if (!mark) return std::nullopt;
    scan.bytes.insert(scan.bytes.end(), at, mark);
    if (end - mark < 2) return std::nullopt;
    const uint8_t marker = mark[1];
    if (marker == 0xFF) return std::nullopt;  // fill bytes are left to libjpeg
    at = mark + 2;
    if (marker == 0) {
      scan.bytes.push_back(0xFF);
      continue;
    }
    const bool restart = marker >= 0xD0 && marker <= 0xD7;
    if (restart && (intervals == 0 || marker != 0xD0 + scan.ends.size() % 8)) return std::nullopt;
    scan.ends.push_back(scan.bytes.size());
    if (restart && scan.ends.size() < intervals) continue;
    scan.bytes.resize(scan.bytes.size() + kMostBytes);
    return scan;
  }
  return std::nullopt;
}

bool Codes::read(const JHUFF_TBL* table, int most) {
  if (!table) return false;
  symbols = table->huffval;
  uint32_t code = 0;
  int32_t at = 0;
  for (int length = 1; length <= kLongest; ++length) {
    const auto l = static_cast<size_t>(length);
    const uint32_t count = table->bits[l];
    offset[l] = at - static_cast<int32_t>(code);
    if (count > 0 && (code + count >= 1U << length || at + static_cast<int32_t>(count) > 256)) return false;
    for (uint32_t i = 0; i < count; ++i, ++code, ++at) {
      if (symbols[at] > most) return false;
      if (length > kLook) continue;
      std::fill_n(short_codes.begin() + (code << (kLook - length)), 1 << (kLook - length),
                  Code{symbols[at], static_cast<uint8_t>(length)});
    }
    behind[l] = code << (kLongest - length);
    code <<= 1;
  }
  return true;
}

bool AcTable::read(const JHUFF_TBL* table) {
  if (!codes.read(table, 255)) return false;
  for (size_t look = 0; look < coefficients.size(); ++look) {
    const auto [symbol, length] = codes.short_codes[look];
    if (length == 0) continue;
    coefficients[look] = look_of(symbol, length);
  }
  for (size_t look = 0; look < pairs.size(); ++look) {
    const Coefficient& first = coefficients[look];
    pairs[look] = {first.steps, first.length};
    if (first.length == 0 || first.length >= kLook || first.steps == kCoefficients) continue;
    const Coefficient& second = coefficients[look << first.length & (pairs.size() - 1)];
    if (second.length == 0 || first.length + second.code_length > kLook) continue;
    pairs[look].steps = static_cast<uint8_t>(pairs[look].steps + second.steps);
    pairs[look].length = static_cast<uint8_t>(pairs[look].length + second.length);
  }
  for (size_t look = 0; look < numbers.size(); ++look) {
    const Coefficient& first = coefficients[look];
    if (first.length == 0 || first.length > kLook) continue;
    numbers[look] = {number_in(look, first), 0, first.steps, 0, first.length, first.length};
    if (first.steps == kCoefficients) continue;
    const size_t rest = look << first.length & (numbers.size() - 1);
    const Coefficient& second = coefficients[rest];
    if (second.length == 0 || first.length + second.length > kLook) continue;
    numbers[look].second = number_in(rest, second);
    numbers[look].more_steps = second.steps;
    numbers[look].length = static_cast<uint8_t>(first.length + second.length);
  }
  return true;
}

}  // namespace settrain::jpeg
