#include "src/loader/pixel_writer.h"

#include <algorithm>
#include <bit>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace settrain {
namespace {

// The nearest bfloat16, halves to the even one. `value` is finite.
uint16_t to_bfloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  return static_cast<uint16_t>((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16);
}

struct Row {
  const uint8_t* pixels;
  int64_t y, height, width;
  bool flip;
};

template <int64_t Channels, class Number>
void write(const Row& row, const Number* table, bool channels_last, Number* image) {
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
void write(const Row& row, int64_t channels, const std::vector<Number>& table, bool channels_last, void* image) {
  const auto write_row = channels == 1 ? write<1, Number> : write<3, Number>;
  write_row(row, table.data(), channels_last, static_cast<Number*>(image));
}

using EightPixels = PixelWriter::EightPixels;

EightPixels eight_pixels(const Normalisation& normalisation, bool channels_last, bool flip) {
  EightPixels eight{};
  for (size_t i = 0; i < 24; ++i) {
    const size_t vector = i / 8, lane = i % 8;
    const size_t pixel = channels_last ? i / 3 : lane, channel = channels_last ? i % 3 : vector;
    const auto byte = static_cast<int8_t>((flip ? 7 - pixel : pixel) * 3 + channel);
    eight.front[vector][lane] = byte < 16 ? byte : int8_t{-1};
    eight.back[vector][lane] = byte < 16 ? int8_t{-1} : static_cast<int8_t>(byte - 8);
    eight.mean[vector][lane] = normalisation.mean[channel];
    eight.std[vector][lane] = normalisation.std[channel];
    eight.inverse_std[vector][lane] = 1 / normalisation.std[channel];
  }
  return eight;
}

#if defined(__x86_64__)
#define SETTRAIN_WRITER_AVX2 __attribute__((target("avx2,fma")))

const bool writer_has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");

// The quotient as a division rounds it, but for rare divisors, in less time (Markstein, IBM Journal of Research and
// Development 34, 1990).
SETTRAIN_WRITER_AVX2 inline __m256 divided(__m256 numbers, __m256 divisor, __m256 inverse) {
  const __m256 quotient = _mm256_mul_ps(numbers, inverse);
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(quotient, divisor, numbers), inverse, quotient);
}

SETTRAIN_WRITER_AVX2 inline void store(__m256 numbers, float* out) {
  _mm256_storeu_ps(out, numbers);
}

// As to_bfloat16 does.
SETTRAIN_WRITER_AVX2 inline void store(__m256 numbers, uint16_t* out) {
  const __m256i bits = _mm256_castps_si256(numbers);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i upper = _mm256_srli_epi32(rounded, 16);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
}

// A row of at least eight pixels, of three channels.
template <class Number>
SETTRAIN_WRITER_AVX2 void compute(const Row& row, const EightPixels& eight, bool channels_last, Number* image) {
  const __m256 most = _mm256_set1_ps(255), inverse_most = _mm256_set1_ps(1 / 255.0F);
  const auto load_bytes = [](const void* bytes)
                              SETTRAIN_WRITER_AVX2 { return _mm_loadu_si128(static_cast<const __m128i*>(bytes)); };
  for (int64_t next = 0; next < row.width; next += 8) {
    const int64_t x = std::min(next, row.width - 8);  // the last eight pixels may repeat some
    const int64_t out_x = row.flip ? row.width - 8 - x : x;
    const __m128i front = load_bytes(row.pixels + x * 3), back = load_bytes(row.pixels + x * 3 + 8);
    for (int64_t v = 0; v < 3; ++v) {
      const auto i = static_cast<size_t>(v);
      const __m128i bytes = _mm_or_si128(_mm_shuffle_epi8(front, load_bytes(eight.front[i].data())),
                                         _mm_shuffle_epi8(back, load_bytes(eight.back[i].data())));
      const __m256 share = divided(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), most, inverse_most);
      const __m256 centred = _mm256_sub_ps(share, _mm256_load_ps(eight.mean[i].data()));
      const __m256 numbers =
          divided(centred, _mm256_load_ps(eight.std[i].data()), _mm256_load_ps(eight.inverse_std[i].data()));
      Number* const out = channels_last ? image + (row.y * row.width + out_x) * 3 + v * 8
                                        : image + (v * row.height + row.y) * row.width + out_x;
      store(numbers, out);
    }
  }
}
#else
constexpr bool writer_has_avx2 = false;

template <class Number>
void compute(const Row&, const EightPixels&, bool, Number*) {}
#endif

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
  if (channels_ != 3 || !writer_has_avx2) return;
  for (const bool flip : {false, true}) {
    eight_pixels_[flip] = eight_pixels(normalisation, format.channels_last, flip);
  }
  computes_ = computes_as_tables();
}

// Whether all numbers that there can be are computed to the bits of the tables, which are divided.
bool PixelWriter::computes_as_tables() const {
  constexpr int64_t kValues = 256;
  std::vector<uint8_t> pixels;
  for (int64_t i = 0; i < kValues * 3; ++i) pixels.push_back(static_cast<uint8_t>(i / 3));
  std::vector<float> computed(kValues * 3), looked_up(kValues * 3);
  const Row row{pixels.data(), 0, 1, kValues, /*flip=*/false};
  compute(row, eight_pixels_[0], format_.channels_last, computed.data());
  write(row, channels_, floats_, format_.channels_last, looked_up.data());
  return std::ranges::equal(computed, looked_up, {}, std::bit_cast<uint32_t, float>, std::bit_cast<uint32_t, float>);
}

void PixelWriter::write_row(const uint8_t* pixels, int64_t y, int64_t height, int64_t width, bool flip,
                            void* image) const {
  const Row row{pixels, y, height, width, flip};
  const bool computes = computes_ && width >= 8;
  const EightPixels& eight = eight_pixels_[flip];
  switch (format_.type) {
    case PixelType::kFloat:
      if (computes) return compute(row, eight, format_.channels_last, static_cast<float*>(image));
      return write(row, channels_, floats_, format_.channels_last, image);
    case PixelType::kBFloat16:
      if (computes) return compute(row, eight, format_.channels_last, static_cast<uint16_t*>(image));
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
