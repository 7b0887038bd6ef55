#include "datasets/decoding/baseline_jpeg.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <vector>

#include "datasets/decoding/jpeg_codes.h"
#include "datasets/decoding/jpeg_pixels.h"

// libjpeg decodes one Huffman code at a time, then its number. Here a look at the next bits finds both, and those of
// the next coefficient too where they are short; where they are long, how many bits the two take.

namespace settrain::jpeg {
namespace {

constexpr int64_t kMostSamples = 1 << 26;  // in a plane, which is held whole; libjpeg holds a few rows
constexpr int kMostBlocks = 6;             // in an MCU

// The place of a coefficient by its number in a file. Damaged files reach numbers of 64 and more, and so does the
// second coefficient of a look behind a block's end. All of these go to place 63, as in libjpeg.
constexpr std::array<uint8_t, 3 * kCoefficients> kPlaces = [] {
  std::array<uint8_t, 3 * kCoefficients> places{};
  int row = 0, column = 0;
  for (int i = 0; i < kCoefficients; ++i) {
    places[static_cast<size_t>(i)] = static_cast<uint8_t>(8 * row + column);
    const bool up = (row + column) % 2 == 0;
    if (up && column == 7) {
      ++row;
    } else if (!up && row == 7) {
      ++column;
    } else {
      row += up ? (row > 0 ? -1 : 0) : 1;
      column += up ? 1 : (column > 0 ? -1 : 0);
    }
  }
  std::fill(places.begin() + kCoefficients, places.end(), uint8_t{63});
  return places;
}();

// A colour component: its codes, and the samples of the MCUs that are needed.
struct Plane {
  const Codes* dc = nullptr;
  const AcTable* ac = nullptr;
  alignas(16) int16_t quantisation[kCoefficients] = {};
  int64_t across = 1, down = 1;   // blocks of an MCU
  int64_t height = 0, width = 0;  // of the whole component
  bool wanted = true;
  int32_t last_dc = 0;

  int64_t top = 0, left = 0, stride = 0;  // the samples' place in the component
  std::unique_ptr<uint8_t[]> samples;

  // Sample (y, x) of the component, which must be among those decoded; rows beyond it are its first or last one.
  uint8_t* at(int64_t y, int64_t x) const {
    return samples.get() + kOverread + (std::clamp<int64_t>(y, 0, height - 1) - top) * stride + x - left;
  }
};

// MCUs [top, bottom) x [left, right).
struct McuBox {
  int64_t top, left, bottom, right;
};

class Decoder {
 public:
  // False where libjpeg has to decode.
  bool prepare(const jpeg_decompress_struct& jpeg, const Box& box, int64_t channels);
  bool decode(const jpeg_decompress_struct& jpeg);
  void write(const Box& box, int64_t channels, Image& image) const;

 private:
  bool read_tables(const jpeg_decompress_struct& jpeg);
  bool decode_intervals(const Scan& scan, int64_t restart_interval, int64_t mcus_across);
  bool decode_mcu(Bits& bits, int64_t row, int64_t column);

  std::array<Codes, NUM_HUFF_TBLS> dc_;
  std::array<AcTable, NUM_HUFF_TBLS> ac_;
  std::vector<Plane> planes_;
  std::vector<size_t> order_;  // the components as they come in the scan
  Subsampling subsampling_ = Subsampling::kNone;
  McuBox needed_{};
};

std::optional<Subsampling> subsampling_of(const jpeg_decompress_struct& jpeg) {
  const auto* parts = jpeg.comp_info;
  if (jpeg.num_components == 1 && jpeg.jpeg_color_space == JCS_GRAYSCALE) return Subsampling::kNone;
  if (jpeg.num_components != 3 || jpeg.jpeg_color_space != JCS_YCbCr) return std::nullopt;
  for (int c = 1; c < 3; ++c) {
    if (parts[c].h_samp_factor != 1 || parts[c].v_samp_factor != 1) return std::nullopt;
  }
  const int across = parts[0].h_samp_factor, down = parts[0].v_samp_factor;
  if (across == 1 && down == 1) return Subsampling::kNone;
  // libjpeg enlarges planes of one or two columns in another way.
  if (across != 2 || down > 2 || parts[1].downsampled_width <= 2) return std::nullopt;
  return down == 1 ? Subsampling::kHorizontal : Subsampling::kBoth;
}

bool Decoder::prepare(const jpeg_decompress_struct& jpeg, const Box& box, int64_t channels) {
  const auto subsampling = subsampling_of(jpeg);
  if (!subsampling || jpeg.progressive_mode || jpeg.arith_code || jpeg.data_precision != 8 ||
      jpeg.comps_in_scan != jpeg.num_components || jpeg.Ss != 0 || jpeg.Se != kCoefficients - 1 || jpeg.Ah != 0 ||
      jpeg.Al != 0)
    return false;
  subsampling_ = *subsampling;
  planes_.resize(static_cast<size_t>(jpeg.num_components));
  const bool grey = jpeg.num_components == 1;
  for (size_t i = 0; i < planes_.size(); ++i) {
    const jpeg_component_info& part = jpeg.comp_info[i];
    Plane& plane = planes_[i];
    if (!grey) {  // the blocks of a single component are MCUs of one, whatever its factors
      plane.across = part.h_samp_factor;
      plane.down = part.v_samp_factor;
    }
    plane.height = part.downsampled_height;
    plane.width = part.downsampled_width;
    plane.wanted = i == 0 || channels == 3;
    order_.push_back(static_cast<size_t>(jpeg.cur_comp_info[i]->component_index));
  }
  if (!read_tables(jpeg)) return false;

  // Enlarging a colour plane reads the samples around, which are those of up to four pixels beside the box.
  constexpr int64_t kMargin = 4;
  const int64_t mcu_height = kBlock * planes_[0].down, mcu_width = kBlock * planes_[0].across;
  const int64_t bottom = std::min<int64_t>(jpeg.image_height, box.top + box.height + kMargin);
  const int64_t right = std::min<int64_t>(jpeg.image_width, box.left + box.width + kMargin);
  needed_ = {std::max<int64_t>(0, box.top - kMargin) / mcu_height, std::max<int64_t>(0, box.left - kMargin) / mcu_width,
             (bottom + mcu_height - 1) / mcu_height, (right + mcu_width - 1) / mcu_width};
  for (Plane& plane : planes_) {
    if (!plane.wanted) continue;
    plane.top = needed_.top * plane.down * kBlock;
    plane.left = needed_.left * plane.across * kBlock;
    plane.stride = (needed_.right - needed_.left) * plane.across * kBlock + kOverread;
    const int64_t rows = (needed_.bottom - needed_.top) * plane.down * kBlock;
    if (rows * plane.stride > kMostSamples) return false;
    plane.samples = std::make_unique_for_overwrite<uint8_t[]>(static_cast<size_t>(rows * plane.stride + 2 * kOverread));
  }
  return true;
}

bool Decoder::read_tables(const jpeg_decompress_struct& jpeg) {
  constexpr int kMostDcSize = 15;
  std::array<bool, NUM_HUFF_TBLS> read_dc{}, read_ac{};
  for (size_t i = 0; i < planes_.size(); ++i) {
    const jpeg_component_info& part = jpeg.comp_info[i];
    const auto dc = static_cast<size_t>(part.dc_tbl_no), ac = static_cast<size_t>(part.ac_tbl_no);
    const auto table = static_cast<size_t>(part.quant_tbl_no);
    if (dc >= NUM_HUFF_TBLS || ac >= NUM_HUFF_TBLS || table >= NUM_QUANT_TBLS || !jpeg.quant_tbl_ptrs[table])
      return false;
    if (!read_dc[dc] && !dc_[dc].read(jpeg.dc_huff_tbl_ptrs[dc], kMostDcSize)) return false;
    if (!read_ac[ac] && !ac_[ac].read(jpeg.ac_huff_tbl_ptrs[ac])) return false;
    read_dc[dc] = read_ac[ac] = true;
    planes_[i].dc = &dc_[dc];
    planes_[i].ac = &ac_[ac];
    for (int k = 0; k < kCoefficients; ++k)
      planes_[i].quantisation[k] = static_cast<int16_t>(jpeg.quant_tbl_ptrs[table]->quantval[k]);
  }
  return true;
}

// std::memset would become a slower `rep stos` here.
SETTRAIN_JPEG_AVX2 inline __attribute__((always_inline)) void clear(int16_t* block) {
  for (int i = 0; i < kCoefficients; i += 16)
    _mm256_store_si256(reinterpret_cast<__m256i*>(block + i), _mm256_setzero_si256());
}

// Reads a block's DC difference. False where there is no such code.
SETTRAIN_JPEG_AVX2 inline __attribute__((always_inline)) bool take_dc(Bits& bits, Plane& plane) {
  bits.fill();
  const Codes::Code size = plane.dc->look_up(bits.peek(kLongest));
  if (size.length == 0) return false;
  plane.last_dc += bits.number_behind(size.length, 63 - size.symbol);
  bits.drop(size.length + size.symbol);
  return plane.last_dc >= INT16_MIN && plane.last_dc <= INT16_MAX;
}

// A coefficient whose code is longer than a look; one of no steps for no code. Not inline, and given the bits by value,
// so that the caller keeps them in registers.
__attribute__((noinline)) AcTable::Coefficient look_up_long(uint32_t next_bits, const AcTable& table) {
  const Codes::Code code = table.codes.look_up(next_bits);
  return code.length == 0 ? AcTable::Coefficient{} : AcTable::look_of(code.symbol, code.length);
}

// Passes over a block's other coefficients.
SETTRAIN_JPEG_AVX2 inline __attribute__((always_inline)) bool pass_over(Bits& bits, const AcTable& table) {
  // A pair is taken only while a run of 16 cannot end the block; codes that end one are never paired with what follows.
  // A fill has bits for two looks.
  constexpr int kBeforeLast = kCoefficients - 16;
  int k = 1;
  const auto take = [&](const auto& looks) SETTRAIN_JPEG_AVX2 __attribute__((always_inline)) {
    const auto next = looks[bits.peek(kLook)];
    if (next.length > 0) [[likely]] {
      bits.drop(next.length);
      k += next.steps;
      return true;
    }
    bits.fill();
    const AcTable::Coefficient found = look_up_long(bits.peek(kLongest), table);
    bits.drop(found.length);
    bits.fill();
    k += found.steps;
    return found.steps > 0;
  };
  while (k < kBeforeLast) {
    bits.fill();
    if (!take(table.pairs)) return false;
    if (k < kBeforeLast && !take(table.pairs)) return false;
  }
  while (k < kCoefficients) {
    bits.fill();
    if (!take(table.coefficients)) return false;
  }
  return true;
}

// Reads a block's other coefficients, one or two at a look.
SETTRAIN_JPEG_AVX2 inline __attribute__((always_inline)) bool take_block(Bits& bits, const AcTable& table,
                                                                         int16_t* block) {
  int k = 1;
  // The end of a block and a run of 16 zeros write 0, to a place that is still 0.
  const auto put = [&](int steps, int16_t number) SETTRAIN_JPEG_AVX2 __attribute__((always_inline)) {
    block[kPlaces[static_cast<size_t>(k + steps - 1)]] = number;
  };
  const auto put_long = [&](AcTable::Coefficient next) SETTRAIN_JPEG_AVX2 __attribute__((always_inline)) {
    put(next.steps, static_cast<int16_t>(bits.number_behind(next.code_length, next.shift)));
    k += next.steps;
    bits.drop(next.length);
  };
  // False at the block's end, or where there is no such code; then `k` is less than kCoefficients.
  const auto take = [&]() SETTRAIN_JPEG_AVX2 __attribute__((always_inline)) {
    const size_t look = bits.peek(kLook);
    const AcTable::Numbers next = table.numbers[look];
    if (next.length > 0) [[likely]] {
      // The second one first: it is 0, and in the place of the first, where there is none.
      put(next.steps + next.more_steps, next.second);
      put(next.steps, next.first);
      k += next.steps;
      if (k >= kCoefficients) {  // what follows is the next block's
        bits.drop(next.first_length);
        return false;
      }
      k += next.more_steps;
      bits.drop(next.length);
      return k < kCoefficients;
    }
    AcTable::Coefficient found = table.coefficients[look];
    if (found.length > 0) {
      put_long(found);
      return k < kCoefficients;
    }
    bits.fill();
    found = look_up_long(bits.peek(kLongest), table);
    if (found.steps == 0) return false;
    put_long(found);
    bits.fill();
    return k < kCoefficients;
  };
  do {
    bits.fill();  // suffices for two looks
  } while (take() && take());
  return k >= kCoefficients;
}

SETTRAIN_JPEG_AVX2 bool Decoder::decode_mcu(Bits& shared, int64_t row, int64_t column) {
  Bits bits = shared;  // in registers
  const bool inside = row >= needed_.top && column >= needed_.left && column < needed_.right;
  // All blocks are read before the first is transformed: vectors that load what was just stored in parts have to wait.
  alignas(32) int16_t blocks[kMostBlocks][kCoefficients];
  int16_t* block = blocks[0];
  for (const size_t c : order_) {
    Plane& plane = planes_[c];
    for (int64_t i = 0; i < plane.down * plane.across; ++i) {
      if (!take_dc(bits, plane)) return false;
      if (!inside || !plane.wanted) {
        if (!pass_over(bits, *plane.ac)) return false;
        continue;
      }
      clear(block);
      block[0] = static_cast<int16_t>(plane.last_dc);
      if (!take_block(bits, *plane.ac, block)) return false;
      block += kCoefficients;
    }
  }
  if (bits.left() < 0) return false;
  shared = bits;
  block = blocks[0];
  for (const size_t c : order_) {
    const Plane& plane = planes_[c];
    for (int64_t i = 0; inside && plane.wanted && i < plane.down * plane.across; ++i, block += kCoefficients) {
      const int64_t y = (row * plane.down + i / plane.across) * kBlock - plane.top;
      const int64_t x = (column * plane.across + i % plane.across) * kBlock - plane.left;
      inverse_dct(block, plane.quantisation, plane.samples.get() + kOverread + y * plane.stride + x, plane.stride);
    }
  }
  return true;
}

bool Decoder::decode_intervals(const Scan& scan, int64_t restart_interval, int64_t mcus_across) {
  const uint8_t* const bytes = scan.bytes.data();
  Bits bits(bytes, bytes + scan.ends[0]);
  size_t interval = 0;
  int64_t left = restart_interval;
  for (int64_t row = 0; row < needed_.bottom; ++row) {
    for (int64_t column = 0; column < mcus_across; ++column) {
      if (restart_interval > 0 && left == 0) {
        // A byte too many in an interval is a warning of libjpeg's.
        if (bits.left() >= 8 || ++interval >= scan.ends.size()) return false;
        bits = Bits(bytes + scan.ends[interval - 1], bytes + scan.ends[interval]);
        for (Plane& plane : planes_) plane.last_dc = 0;
        left = restart_interval;
      }
      --left;
      if (!decode_mcu(bits, row, column)) return false;
    }
  }
  return true;
}

bool Decoder::decode(const jpeg_decompress_struct& jpeg) {
  const uint8_t* const begin = jpeg.src->next_input_byte;
  const int64_t mcu_width = kBlock * planes_[0].across, interval = jpeg.restart_interval;
  const int64_t across = (int64_t{jpeg.image_width} + mcu_width - 1) / mcu_width;
  const int64_t intervals = interval > 0 ? (needed_.bottom * across + interval - 1) / interval : 0;
  const auto scan = read_scan(begin, begin + jpeg.src->bytes_in_buffer, static_cast<size_t>(intervals));
  return scan && decode_intervals(*scan, interval, across);
}

void Decoder::write(const Box& box, int64_t channels, Image& image) const {
  image.height = box.height;
  image.width = box.width;
  image.channels = channels;
  image.pixels.resize(static_cast<size_t>(box.height * box.width * channels));
  const bool colours = planes_.size() == 3 && channels == 3, enlarged = subsampling_ != Subsampling::kNone;
  const bool vertically = subsampling_ == Subsampling::kBoth;
  // The first and the last column of colours that the box needs.
  const int64_t first = box.left / 2, last = (box.left + box.width - 1) / 2;
  std::vector<uint8_t> rows[2];
  for (auto& row : rows) row.resize(static_cast<size_t>(2 * (last - first + 1) + kOverread));
  for (int64_t y = box.top; y < box.top + box.height; ++y) {
    uint8_t* const out = image.pixels.data() + (y - box.top) * box.width * channels;
    const uint8_t* const luma = planes_[0].at(y, box.left);
    if (channels == 1) {
      std::copy_n(luma, box.width, out);
      continue;
    }
    const uint8_t* differences[2] = {};
    for (size_t c = 0; colours && c < 2; ++c) {
      const Plane& plane = planes_[c + 1];
      if (!enlarged) {
        differences[c] = plane.at(y, box.left);
        continue;
      }
      const int64_t near = vertically ? y / 2 : y, far = vertically ? near + (y % 2 == 0 ? -1 : 1) : near;
      for (const int64_t row : {near, far}) {  // beyond the plane, its edge
        if (first == 0) *plane.at(row, -1) = *plane.at(row, 0);
        if (last == plane.width - 1) *plane.at(row, plane.width) = *plane.at(row, plane.width - 1);
      }
      enlarge_row(plane.at(near, first), plane.at(far, first), subsampling_, last - first + 1, rows[c].data());
      differences[c] = rows[c].data() + box.left % 2;
    }
    convert_row(luma, differences[0], differences[1], box.width, out);
  }
}

}  // namespace

bool decode_baseline(const jpeg_decompress_struct& jpeg, const Box& box, int64_t channels, Image& image) {
  static const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
  if (!supported) return false;
  const auto decoder = std::make_unique<Decoder>();  // its tables are large for a stack
  if (!decoder->prepare(jpeg, box, channels) || !decoder->decode(jpeg)) return false;
  decoder->write(box, channels, image);
  return true;
}

}  // namespace settrain::jpeg

#else

namespace settrain::jpeg {

bool decode_baseline(const jpeg_decompress_struct&, const Box&, int64_t, Image&) {
  return false;
}

}  // namespace settrain::jpeg

#endif
