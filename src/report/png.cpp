#include "src/report/png.h"

#include <zlib.h>

#include <cstdlib>
#include <stdexcept>
#include <vector>

namespace settrain {
namespace {

void append_integer(std::string& bytes, uint32_t value) {
  for (const int shift : {24, 16, 8, 0}) bytes += static_cast<char>(value >> shift & 0xFF);
}

const Bytef* as_bytes(const std::string& text) {
  return reinterpret_cast<const Bytef*>(text.data());
}

void append_chunk(std::string& png, const std::string& kind, const std::string& data) {
  append_integer(png, static_cast<uint32_t>(data.size()));
  const std::string body = kind + data;
  png += body;
  append_integer(png, static_cast<uint32_t>(crc32(0, as_bytes(body), static_cast<uInt>(body.size()))));
}

// Which of its neighbours a value is closest to: section 9.4.
int paeth(int left, int above, int corner) {
  const int to_left = std::abs(above - corner), to_above = std::abs(left - corner);
  const int to_corner = std::abs(left + above - 2 * corner);
  if (to_left <= to_above && to_left <= to_corner) return left;
  return to_above <= to_corner ? above : corner;
}

// Every row by Paeth's filter, number 4, which suits photographs.
std::string filtered_rows(const Image& image) {
  const int64_t channels = image.channels, stride = image.width * channels;
  std::string rows;
  for (int64_t y = 0; y < image.height; ++y) {
    rows += '\4';
    const auto at = [&](int64_t row, int64_t x) -> int {
      return row < 0 || x < 0 ? 0 : image.pixels[static_cast<size_t>(row * stride + x)];
    };
    for (int64_t x = 0; x < stride; ++x) {
      rows += static_cast<char>(at(y, x) - paeth(at(y, x - channels), at(y - 1, x), at(y - 1, x - channels)));
    }
  }
  return rows;
}

std::string compressed(const std::string& data) {
  uLongf size = compressBound(data.size());
  std::string result(size, '\0');
  if (compress2(reinterpret_cast<Bytef*>(result.data()), &size, as_bytes(data), data.size(), 9) != Z_OK) {
    throw std::runtime_error("zlib cannot compress an image");
  }
  result.resize(size);
  return result;
}

}  // namespace

std::string encode_png(const Image& image) {
  if (image.channels != 1 && image.channels != 3) throw std::invalid_argument("encode_png: 1 or 3 channels");
  if (image.height < 1 || image.width < 1 || std::ssize(image.pixels) != image.height * image.width * image.channels) {
    throw std::invalid_argument("encode_png: pixels and size do not fit");
  }
  std::string header;
  append_integer(header, static_cast<uint32_t>(image.width));
  append_integer(header, static_cast<uint32_t>(image.height));
  // 8 bits a channel; grey or RGB; deflate, adaptive filters, not interlaced.
  for (const int field : {8, image.channels == 3 ? 2 : 0, 0, 0, 0}) header += static_cast<char>(field);
  std::string png = "\x89PNG\r\n\x1a\n";
  append_chunk(png, "IHDR", header);
  append_chunk(png, "IDAT", compressed(filtered_rows(image)));
  append_chunk(png, "IEND", "");
  return png;
}

std::string encode_base64(std::string_view bytes) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t group = 0;
    for (size_t j = i; j < i + 3; ++j) group = group << 8 | (j < bytes.size() ? static_cast<uint8_t>(bytes[j]) : 0);
    for (size_t j = 0; j < 4; ++j) {
      text += i + j > bytes.size() ? '=' : kDigits[group >> (18 - 6 * j) & 63];
    }
  }
  return text;
}

}  // namespace settrain
