#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <stdexcept>
#include <string>
#include <vector>

#include "datasets/decoding/image_decoders.h"

namespace settrain {
namespace {

// A BMP's numbers are little-endian. Throws where the file ends before.
class BmpBytes {
 public:
  explicit BmpBytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  std::span<const uint8_t> part(size_t at, size_t size) const {
    if (at > bytes_.size() || size > bytes_.size() - at) throw std::runtime_error("the BMP is cut short");
    return bytes_.subspan(at, size);
  }
  uint32_t number(size_t at, size_t size) const {
    uint32_t value = 0;
    int shift = 0;
    for (const uint8_t byte : part(at, size)) {
      value |= uint32_t{byte} << shift;
      shift += 8;
    }
    return value;
  }

 private:
  std::span<const uint8_t> bytes_;
};

enum class Packing : uint32_t { kNone = 0, kRuns8 = 1, kRuns4 = 2, kMasks = 3 };

struct BmpHeader {
  int64_t width = 0, height = 0, bits = 0;
  bool top_down = false;
  Packing packing = Packing::kNone;
  std::array<uint32_t, 3> masks{};  // of red, green and blue, for 16 and 32 bits
  std::array<std::array<uint8_t, 3>, 256> palette{};
  size_t pixels_at = 0;
};

BmpHeader read_bmp_header(const BmpBytes& bytes) {
  BmpHeader header;
  const size_t size = bytes.number(14, 4);
  size_t at = 14 + size, colours = 0;
  header.pixels_at = bytes.number(10, 4);
  const bool old = size == 12;  // OS/2's first
  if (old) {
    header.width = bytes.number(18, 2);
    header.height = bytes.number(20, 2);
    header.bits = bytes.number(24, 2);
  } else {
    if (size < 40 || size > 124)
      throw std::runtime_error("a BMP header of " + std::to_string(size) + " bytes is not read");
    const int64_t height = static_cast<int32_t>(bytes.number(22, 4));
    header.width = static_cast<int32_t>(bytes.number(18, 4));
    header.height = std::abs(height);
    header.top_down = height < 0;
    header.bits = bytes.number(28, 2);
    header.packing = static_cast<Packing>(bytes.number(30, 4));
    colours = bytes.number(46, 4);
  }
  const int64_t bits = header.bits;
  if (bits != 1 && bits != 4 && bits != 8 && bits != 16 && bits != 24 && bits != 32) {
    throw std::runtime_error("a BMP of " + std::to_string(bits) + " bits a pixel is not read");
  }
  const bool fits = header.packing == Packing::kNone || (header.packing == Packing::kRuns8 && bits == 8) ||
                    (header.packing == Packing::kRuns4 && bits == 4) ||
                    (header.packing == Packing::kMasks && bits >= 16);
  if (!fits) {
    throw std::runtime_error("a BMP of compression " + std::to_string(static_cast<uint32_t>(header.packing)) + " and " +
                             std::to_string(bits) + " bits is not read");
  }
  header.masks =
      bits == 16 ? std::array<uint32_t, 3>{0x7C00, 0x3E0, 0x1F} : std::array<uint32_t, 3>{0xFF0000, 0xFF00, 0xFF};
  if (header.packing == Packing::kMasks) {  // they stand at the same place within longer headers
    std::array<uint32_t, 3> masks{};
    for (size_t i = 0; i < 3; ++i) masks[i] = bytes.number(54 + 4 * i, 4);
    if (masks != std::array<uint32_t, 3>{}) header.masks = masks;
    if (size == 40) at += 12;
  }
  if (bits <= 8) {
    const size_t entry = old ? 3 : 4;
    if (colours == 0) colours = size_t{1} << bits;
    if (colours > 65536) throw std::runtime_error("the BMP declares too many colours");
    const auto stored = bytes.part(at, colours * entry);
    for (size_t i = 0; i < std::min<size_t>(colours, 256); ++i) {
      header.palette[i] = {stored[i * entry + 2], stored[i * entry + 1], stored[i * entry]};
    }
    if (header.pixels_at == at) header.pixels_at += colours * entry;  // some programs forget the palette there
    at += colours * entry;
  }
  if (header.pixels_at == 0) header.pixels_at = at;
  return header;
}

// Stores one row of pixels that are not compressed.
void store_bmp_row(const BmpHeader& header, const uint8_t* row, int64_t channels, uint8_t* out) {
  const auto scaled = [](uint32_t value, uint32_t mask) {
    if (mask == 0) return 0;
    const uint32_t most = mask >> std::countr_zero(mask);
    return static_cast<int>(uint64_t{(value & mask) >> std::countr_zero(mask)} * 255 / most);
  };
  for (int64_t x = 0; x < header.width; ++x) {
    if (header.bits <= 8) {
      const int64_t bit = x * header.bits;
      const auto index = row[bit / 8] >> (8 - header.bits - bit % 8) & ((1 << header.bits) - 1);
      const auto& colour = header.palette[static_cast<size_t>(index)];
      out = store(out, channels, colour[0], colour[1], colour[2]);
    } else if (header.bits == 24) {
      out = store(out, channels, row[3 * x + 2], row[3 * x + 1], row[3 * x]);
    } else {
      uint32_t value = 0;
      const int64_t size = header.bits / 8;
      for (int64_t i = 0; i < size; ++i) value |= uint32_t{row[size * x + i]} << 8 * i;
      const auto& [red, green, blue] = header.masks;
      out = store(out, channels, scaled(value, red), scaled(value, green), scaled(value, blue));
    }
  }
}

// Runs of equal pixels, escapes and literal pixels: Microsoft's "Bitmap Compression". Pixels that none of them names
// have index 0. Returns [height, width] indices, in the file's order of rows.
std::vector<uint8_t> unpack_runs(const BmpHeader& header, const BmpBytes& bytes) {
  std::vector<uint8_t> indices(static_cast<size_t>(header.height * header.width));
  const bool halves = header.packing == Packing::kRuns4;
  int64_t x = 0, y = 0;
  const auto put = [&](int64_t index) {
    if (x < header.width && y < header.height) {
      indices[static_cast<size_t>(y * header.width + x)] = static_cast<uint8_t>(index);
      ++x;
    }
  };
  for (size_t at = header.pixels_at; y < header.height;) {
    const auto pair = bytes.part(at, 2);
    at += 2;
    const int64_t count = pair[0], value = pair[1];
    if (count > 0) {
      for (int64_t i = 0; i < count; ++i) put(!halves ? value : i % 2 == 0 ? value >> 4 : value & 15);
    } else if (value == 0) {  // end of the row
      x = 0;
      ++y;
    } else if (value == 1) {  // end of the image
      break;
    } else if (value == 2) {
      const auto step = bytes.part(at, 2);
      at += 2;
      x += step[0];
      y += step[1];
    } else {
      const auto size = static_cast<size_t>(halves ? (value + 1) / 2 : value);
      const auto literal = bytes.part(at, size);
      at += size + size % 2;
      for (int64_t i = 0; i < value; ++i) {
        const auto byte = literal[static_cast<size_t>(halves ? i / 2 : i)];
        put(!halves ? byte : i % 2 == 0 ? byte >> 4 : byte & 15);
      }
    }
    // The last row needs no end, but most programs write one, and the image's end behind it.
    if (y == header.height - 1 && x == header.width) break;
  }
  return indices;
}

}  // namespace

void decode_bmp(std::span<const uint8_t> file, const ImageHeader& declared, int64_t channels, Image& image) {
  const BmpBytes bytes(file);
  const BmpHeader header = read_bmp_header(bytes);
  set_size(image, declared, header.height, header.width, channels);
  const bool runs = header.packing == Packing::kRuns8 || header.packing == Packing::kRuns4;
  const auto stride = static_cast<size_t>((header.width * header.bits + 31) / 32 * 4);
  const auto stored =
      runs ? std::span<const uint8_t>() : bytes.part(header.pixels_at, stride * static_cast<size_t>(header.height));
  const std::vector<uint8_t> indices = runs ? unpack_runs(header, bytes) : std::vector<uint8_t>();
  image.pixels.resize(static_cast<size_t>(image.height * image.width * channels));
  for (int64_t y = 0; y < header.height; ++y) {
    const int64_t row = header.top_down ? y : header.height - 1 - y;
    uint8_t* out = image.pixels.data() + y * header.width * channels;
    if (!runs) {
      store_bmp_row(header, stored.data() + static_cast<size_t>(row) * stride, channels, out);
      continue;
    }
    for (int64_t x = 0; x < header.width; ++x) {
      const auto& colour = header.palette[indices[static_cast<size_t>(row * header.width + x)]];
      out = store(out, channels, colour[0], colour[1], colour[2]);
    }
  }
}

}  // namespace settrain
