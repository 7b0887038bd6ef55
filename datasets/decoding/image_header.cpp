#include "datasets/decoding/image_header.h"

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <vector>

namespace settrain {
namespace {

enum class Order { kBig, kLittle };

// Bytes with checked access. Offsets are sums of a few numbers below 2^63 at most, so they cannot overflow.
class Bytes {
 public:
  explicit Bytes(std::span<const uint8_t> bytes) : bytes_(bytes) {}

  bool has(size_t at, size_t size) const { return at <= bytes_.size() && size <= bytes_.size() - at; }

  // An unsigned number of `size` [1 to 8] bytes; 0 where some are missing, or it is 2^63 or more.
  int64_t number(size_t at, size_t size, Order order) const {
    if (!has(at, size)) return 0;
    uint64_t value = 0;
    for (size_t i = 0; i < size; ++i) value = value << 8 | bytes_[order == Order::kBig ? at + i : at + size - 1 - i];
    return value > INT64_MAX ? 0 : static_cast<int64_t>(value);
  }

  bool says(size_t at, std::string_view text) const {
    if (!has(at, text.size())) return false;
    for (size_t i = 0; i < text.size(); ++i) {
      if (bytes_[at + i] != static_cast<uint8_t>(text[i])) return false;
    }
    return true;
  }

  // The bytes from `at` on, `size` at most.
  Bytes part(size_t at, size_t size) const {
    if (at >= bytes_.size()) return Bytes({});
    return Bytes(bytes_.subspan(at, std::min(size, bytes_.size() - at)));
  }

 private:
  std::span<const uint8_t> bytes_;
};

// TIFF 6.0, section 2. EXIF blocks have the same format.
using namespace std::string_view_literals;
constexpr std::string_view kLittleTiff = "II*\0"sv, kBigTiff = "MM\0*"sv;
constexpr std::string_view kLittleBigTiff = "II+\0"sv, kBigBigTiff = "MM\0+"sv;  // BigTIFF: offsets of 64 bits
constexpr int64_t kWidthTag = 256, kHeightTag = 257, kOrientationTag = 274;

bool is_big_tiff(const Bytes& bytes) {
  return bytes.says(0, kLittleBigTiff) || bytes.says(0, kBigBigTiff);
}

// The value of a field of the first directory that is a single SHORT or LONG; 0 where there is none.
int64_t tiff_field(const Bytes& bytes, int64_t wanted) {
  const Order order = bytes.says(0, "MM") ? Order::kBig : Order::kLittle;
  const bool big = is_big_tiff(bytes);
  const size_t offset_size = big ? 8 : 4, count_size = big ? 8 : 2, field_size = 4 + 2 * offset_size;
  const auto directory = static_cast<size_t>(bytes.number(offset_size, offset_size, order));
  const int64_t fields = bytes.number(directory, count_size, order);
  size_t field = directory + count_size;
  for (int64_t i = 0; i < fields; ++i, field += field_size) {
    if (!bytes.has(field, field_size)) return 0;
    if (bytes.number(field, 2, order) != wanted) continue;
    constexpr int64_t kShort = 3, kLong = 4;
    const int64_t type = bytes.number(field + 2, 2, order), count = bytes.number(field + 4, offset_size, order);
    if ((type != kShort && type != kLong) || count != 1) return 0;
    return bytes.number(field + 4 + offset_size, type == kShort ? 2 : 4, order);
  }
  return 0;
}

ImageHeader parse_tiff(const Bytes& bytes) {
  return {ImageFormat::kTiff, tiff_field(bytes, kHeightTag), tiff_field(bytes, kWidthTag)};
}

constexpr std::string_view kExif = "Exif\0\0"sv;

// The EXIF orientation, 1 to 8; none where `block` is no EXIF block or has none. JPEGs have a name in front of it, and
// some programs write that into PNGs and WebPs too.
std::optional<int> exif_orientation(const Bytes& block) {
  const Bytes tiff = block.part(block.says(0, kExif) ? kExif.size() : 0, SIZE_MAX);
  if (!tiff.says(0, kLittleTiff) && !tiff.says(0, kBigTiff)) return std::nullopt;
  const int64_t value = tiff_field(tiff, kOrientationTag);
  if (value < 1 || value > 8) return std::nullopt;
  return static_cast<int>(value);
}

// ITU T.81, annex B. Reads the segments up to the first scan, and skips garbage between them, as decoders do.
ImageHeader parse_jpeg(const Bytes& bytes) {
  ImageHeader header{.format = ImageFormat::kJpeg};
  std::optional<int> orientation;
  bool has_frame = false;
  for (size_t at = 2; bytes.has(at, 2);) {
    const int64_t marker = bytes.number(at, 2, Order::kBig);
    const int64_t code = marker & 0xFF;
    if (marker < 0xFF00 || code == 0xFF || code == 0x00) {
      ++at;
      continue;
    }
    at += 2;
    constexpr int64_t kTemporary = 0x01, kRestart0 = 0xD0, kStart = 0xD8, kEnd = 0xD9, kScan = 0xDA, kApp1 = 0xE1;
    if (code == kTemporary || (code >= kRestart0 && code <= kStart)) continue;  // these have no length
    if (code == kEnd || code == kScan) break;
    // The length includes its own two bytes. Decoders treat a segment with a smaller length as empty.
    const int64_t length = std::max<int64_t>(2, bytes.number(at, 2, Order::kBig));
    const Bytes segment = bytes.part(at + 2, static_cast<size_t>(length) - 2);
    // SOF0 to SOF15; between them lie DHT, JPG and DAC.
    const bool is_frame = code >= 0xC0 && code <= 0xCF && code != 0xC4 && code != 0xC8 && code != 0xCC;
    if (is_frame && !has_frame && segment.has(1, 4)) {
      has_frame = true;
      header.height = segment.number(1, 2, Order::kBig);
      header.width = segment.number(3, 2, Order::kBig);
    }
    if (code == kApp1 && !orientation && segment.says(0, kExif)) orientation = exif_orientation(segment);
    at += static_cast<size_t>(length);
  }
  header.orientation = orientation.value_or(1);
  return header;
}

// PNG 3, section 5.3: chunks of a length, a name, data and a checksum. The one with EXIF may lie behind the pixels.
ImageHeader parse_png(const Bytes& bytes) {
  ImageHeader header{.format = ImageFormat::kPng};
  if (!bytes.says(12, "IHDR") || !bytes.has(16, 8)) return header;
  header.width = bytes.number(16, 4, Order::kBig);
  header.height = bytes.number(20, 4, Order::kBig);
  for (size_t at = 8; bytes.has(at, 8);) {
    const auto length = static_cast<size_t>(bytes.number(at, 4, Order::kBig));
    if (bytes.says(at + 4, "eXIf")) header.orientation = exif_orientation(bytes.part(at + 8, length)).value_or(1);
    if (bytes.says(at + 4, "IEND")) break;
    at += 8 + length + 4;
  }
  return header;
}

// A signed 32-bit number.
int64_t signed_number(const Bytes& bytes, size_t at) {
  return static_cast<int32_t>(static_cast<uint32_t>(bytes.number(at, 4, Order::kLittle)));
}

// The kinds of Windows and OS/2 differ only in the length of the second header. A negative height: rows from the top.
ImageHeader parse_bmp(const Bytes& bytes) {
  constexpr int64_t kOldHeader = 12, kShortestHeader = 16, kLongestHeader = 124;
  const int64_t length = bytes.number(14, 4, Order::kLittle);
  if (length == kOldHeader) {
    if (!bytes.has(18, 4)) return {ImageFormat::kBmp};
    return {ImageFormat::kBmp, bytes.number(20, 2, Order::kLittle), bytes.number(18, 2, Order::kLittle)};
  }
  if (length < kShortestHeader || length > kLongestHeader) return {};  // many texts begin with "BM"
  if (!bytes.has(18, 8)) return {ImageFormat::kBmp};
  return {ImageFormat::kBmp, std::abs(signed_number(bytes, 22)), signed_number(bytes, 18)};
}

// RFC 9649; for VP8, RFC 6386, section 9.1. Chunks have a name, a length and data, to which a byte is added where the
// length is odd.
ImageHeader parse_webp(const Bytes& bytes) {
  ImageHeader header{.format = ImageFormat::kWebp};
  constexpr size_t kData = 20;  // of the first chunk
  const auto number = [&](size_t at, size_t size) { return bytes.number(kData + at, size, Order::kLittle); };
  if (bytes.says(12, "VP8 ") && bytes.says(kData + 3, "\x9D\x01\x2A") && bytes.has(kData + 6, 4)) {
    header.width = number(6, 2) & 0x3FFF;  // two bits of scale lie above
    header.height = number(8, 2) & 0x3FFF;
  } else if (bytes.says(12, "VP8L") && bytes.says(kData, "\x2F") && bytes.has(kData + 1, 4)) {
    header.width = (number(1, 4) & 0x3FFF) + 1;
    header.height = (number(1, 4) >> 14 & 0x3FFF) + 1;
  } else if (bytes.says(12, "VP8X") && bytes.has(kData + 4, 6)) {
    header.width = number(4, 3) + 1;
    header.height = number(7, 3) + 1;
  }
  for (size_t at = 12; bytes.has(at, 8);) {
    const auto length = static_cast<size_t>(bytes.number(at + 4, 4, Order::kLittle));
    if (bytes.says(at, "EXIF")) header.orientation = exif_orientation(bytes.part(at + 8, length)).value_or(1);
    at += 8 + length + length % 2;
  }
  return header;
}

ImageHeader parse(const Bytes& bytes) {
  if (bytes.says(0, "\xFF\xD8\xFF")) return parse_jpeg(bytes);
  if (bytes.says(0, "\x89PNG\r\n\x1A\n")) return parse_png(bytes);
  if (bytes.says(0, "RIFF") && bytes.says(8, "WEBP")) return parse_webp(bytes);
  if (bytes.says(0, kLittleTiff) || bytes.says(0, kBigTiff) || is_big_tiff(bytes)) return parse_tiff(bytes);
  if (bytes.says(0, "BM")) return parse_bmp(bytes);
  return {};
}

}  // namespace

std::string_view name_of(ImageFormat format) {
  switch (format) {
    case ImageFormat::kJpeg:
      return "JPEG";
    case ImageFormat::kPng:
      return "PNG";
    case ImageFormat::kBmp:
      return "BMP";
    case ImageFormat::kWebp:
      return "WebP";
    case ImageFormat::kTiff:
      return "TIFF";
    case ImageFormat::kUnknown:
      break;
  }
  return "unknown";
}

ImageHeader parse_image_header(std::span<const uint8_t> bytes) {
  ImageHeader header = parse(Bytes(bytes));
  // No decoder accepts such a file, and a size with one zero would mislead.
  if (header.height <= 0 || header.width <= 0) header.height = header.width = 0;
  return header;
}

std::optional<ImageHeader> read_image_header(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::vector<uint8_t> bytes;
  ImageHeader header;
  // Nearly every header is in the first bytes; a TIFF's may be at the end.
  for (const size_t size : {size_t{1} << 16, SIZE_MAX}) {
    std::error_code error;
    const auto whole = static_cast<size_t>(std::filesystem::file_size(file, error));
    if (error) return std::nullopt;
    const size_t before = bytes.size();
    bytes.resize(std::min(size, whole));
    if (bytes.size() > before) {
      stream.read(reinterpret_cast<char*>(bytes.data() + before), static_cast<std::streamsize>(bytes.size() - before));
    }
    if (!stream) return std::nullopt;
    header = parse_image_header(bytes);
    if (header.height > 0 || header.format == ImageFormat::kUnknown || bytes.size() == whole) break;
  }
  return header;
}

}  // namespace settrain
