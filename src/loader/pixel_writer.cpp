#include "src/loader/pixel_writer.h"

#include <algorithm>
#include <bit>

namespace settrain {
namespace {

// The nearest bfloat16, halves to the even one. `value` is finite.
uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

template <int64_t Channels, class Number>
void write(const PixelRow& row, const Number* table, bool channels_last, Number* image) {
  const int64_t direction = row.flip ? -1 : 1, start = row.flip ? row.width - 1 : 0;
  if (channels_last) {
    Number* out = image + (row.y * row.width + start) * Channels;
    const uint8_t* in = row.pixels;
    for (int64_t x = 0; x < row.width; ++x, in += Channels, out += direction * Channels) {
      for (int64_t c = 0; c < Channels; ++c) out[c] = table[c * 256 + in[c]];
    }
    return;
  }
  for (int64_t c = 0; c < Channels; ++c) {
    Number* out = image + (c * row.height + row.y) * row.width + start;
    for (int64_t x = 0; x < row.width; ++x) out[x * direction] = table[c * 256 + row.pixels[x * Channels + c]];
  }
}

template <class Number>
void write(const PixelRow& row, int64_t channels, const std::vector<Number>& table, bool channels_last, void* image) {
  const auto write_row = channels == 1 ? write<1, Number> : write<3, Number>;
  write_row(row, table.data(), channels_last, static_cast<Number*>(image));
}

}  // namespace

PixelWriter::PixelWriter(const Normalisation& normalisation, PixelFormat format)
    : channels_(std::ssize(normalisation.mean)), format_(format) {
  for (size_t c = 0; c < normalisation.mean.size(); ++c) {
    for (int value = 0; value < 256; ++value) {
      const float number = (static_cast<float>(value) / 255.0F - normalisation.mean[c]) / normalisation.std[c];
      floats_.push_back(number);
      bfloats_.push_back(to_bfloat16(number));
      bytes_.push_back(static_cast<uint8_t>(value));
    }
  }
  if (channels_ != 3 || format.type == PixelType::kByte) return;
  eight_pixels_ = eight_pixels(normalisation.mean.data(), normalisation.std.data(), format.channels_last);
  computes_ = computes_all(eight_pixels_, floats_.data());
}

void PixelWriter::write_row(const uint8_t* pixels, int64_t y, int64_t height, int64_t width, bool flip,
                            void* image) const {
  const PixelRow row{pixels, y, height, width, flip};
  if (computes_ && width >= kFewestPixels) {
    if (format_.type == PixelType::kFloat) return normalise_row(row, eight_pixels_, static_cast<float*>(image));
    return normalise_row(row, eight_pixels_, static_cast<uint16_t*>(image));
  }
  switch (format_.type) {
    case PixelType::kFloat:
      return write(row, channels_, floats_, format_.channels_last, image);
    case PixelType::kBFloat16:
      return write(row, channels_, bfloats_, format_.channels_last, image);
    case PixelType::kByte:
      if (format_.channels_last && !flip) {  // the row as it is
        std::copy_n(pixels, width * channels_, static_cast<uint8_t*>(image) + y * width * channels_);
        return;
      }
      return write(row, channels_, bytes_, format_.channels_last, image);
  }
}

}  // namespace settrain
