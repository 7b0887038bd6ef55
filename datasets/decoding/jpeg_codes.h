// The coded bits of a JPEG's scan, and its Huffman codes.
#pragma once

// clang-format off
#include <cstdio>  // before jpeglib.h, which uses FILE and size_t
#include <jpeglib.h>
// clang-format on

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace settrain::jpeg {

inline constexpr int kLook = 10;  // bits of a look; larger tables would crowd the first-level cache
inline constexpr int kLongest = 16;
inline constexpr int kCoefficients = 64;

/// The coded bytes of a scan without the zeros behind each 0xFF, and where its restart intervals end.
struct Scan {
  std::vector<uint8_t> bytes;
  std::vector<size_t> ends;
};

/// Reads a scan until its end, or the end of restart interval `intervals` (0: there are none). Enough zeros follow that
/// an MCU can be read behind the end. Empty where the scan has no end, a restart marker is out of turn, or two bytes
/// 0xFF follow each other.
std::optional<Scan> read_scan(const uint8_t* at, const uint8_t* end, size_t intervals);

/// The bits of a restart interval. Behind its end follow those of the next one, or zeros.
class Bits {
 public:
  Bits(const uint8_t* begin, const uint8_t* end) : next_(begin), end_(end) {}

  // Afterwards at least 56 bits can be taken.
  void fill() {
    uint64_t word = 0;
    std::memcpy(&word, next_, sizeof word);
    bits_ |= __builtin_bswap64(word) >> count_;
    next_ += (63 - count_) >> 3;
    count_ |= 56;
  }
  // The next `count` bits, 1 to 16.
  uint32_t peek(int count) const { return static_cast<uint32_t>(bits_ >> (64 - count)); }
  void drop(int count) {
    bits_ <<= count;
    count_ -= count;
  }
  // The number of 63 - `shift` bits, 0 to 15, behind `skipped` bits. One that begins with 0 is negative.
  int32_t number_behind(int skipped, int shift) const {
    const uint64_t rest = bits_ << skipped;
    const auto flip = ~static_cast<uint64_t>(static_cast<int64_t>(rest) >> 63);  // all ones where it is negative
    return static_cast<int32_t>((((rest ^ flip) >> 1 >> shift) ^ flip) - flip);
  }
  // Bits that are left; negative if more were taken than there are.
  int64_t left() const { return 8 * (end_ - next_) + count_; }

 private:
  const uint8_t *next_, *end_;
  uint64_t bits_ = 0;
  int count_ = 0;
};

/// The codes of a Huffman table.
struct Codes {
  struct Code {
    uint8_t symbol, length;  // length 0: a longer code, or none
  };
  std::array<Code, 1 << kLook> short_codes{};
  std::array<uint32_t, kLongest + 1> behind{};  // for each length the first 16 bits behind its codes
  std::array<int32_t, kLongest + 1> offset{};   // and where its symbols begin, less its first code
  const uint8_t* symbols = nullptr;

  /// False for a table that libjpeg refuses: codes that do not fit, or are all ones, or symbols above `most`.
  bool read(const JHUFF_TBL* table, int most);

  /// The code that the next 16 bits begin with; its length is 0 where there is none.
  Code look_up(uint32_t next) const {
    const Code code = short_codes[next >> (kLongest - kLook)];
    if (code.length > 0) return code;
    for (int length = kLook + 1; length <= kLongest; ++length) {
      const auto l = static_cast<size_t>(length);
      if (next >= behind[l]) continue;
      return {symbols[offset[l] + static_cast<int32_t>(next >> (kLongest - length))], static_cast<uint8_t>(length)};
    }
    return {};
  }
};

/// A symbol of an AC table is a run of zeros, and the size of the number behind it. Size 0 ends the block; with a run
/// of 15 it means 16 zeros.
constexpr int size_of(int symbol) {
  return symbol & 15;
}
constexpr int steps_of(int symbol) {
  return size_of(symbol) > 0 || symbol >> 4 == 15 ? (symbol >> 4) + 1 : kCoefficients;
}

/// Looks at the next bits of a block, and what each says.
struct AcTable {
  // Length 0: the code is longer than the look, or there is none.
  struct Coefficient {
    uint8_t steps, length, code_length, shift;  // length: of the code and its number of 63 - shift bits
  };
  struct Pair {
    uint8_t steps, length;
  };
  // The numbers of two coefficients; of one, where the second one's does not end within the look; or of none, with a
  // length of 0.
  struct Numbers {
    int16_t first, second;
    uint8_t steps, more_steps;     // of the first, and of the second
    uint8_t first_length, length;  // of the first, and of both
  };
  Codes codes;
  std::array<Coefficient, 1 << kLook> coefficients{};
  std::array<Numbers, 1 << kLook> numbers{};  // for blocks that are read
  // For blocks that are passed over: two coefficients, or one where the second one's code is not seen.
  std::array<Pair, 1 << kLook> pairs{};

  static Coefficient look_of(int symbol, int code_length) {
    const int size = size_of(symbol);
    return {static_cast<uint8_t>(steps_of(symbol)), static_cast<uint8_t>(code_length + size),
            static_cast<uint8_t>(code_length), static_cast<uint8_t>(63 - size)};
  }

  /// False for a table that libjpeg refuses.
  bool read(const JHUFF_TBL* table);
};

}  // namespace settrain::jpeg
