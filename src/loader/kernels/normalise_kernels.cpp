#include "src/loader/kernels/normalise_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace settrain {

EightPixels eight_pixels(const float* mean, const float* std, bool channels_last) {
  EightPixels eight;
  eight.channels_last = channels_last;
  for (int i = 0; i < 24; ++i) {
    const int vector = i / 8, lane = i % 8;
    const int pixel = channels_last ? i / 3 : lane, channel = channels_last ? i % 3 : vector;
    eight.mean[vector][lane] = mean[channel];
    eight.std[vector][lane] = std[channel];
    eight.inverse_std[vector][lane] = 1 / std[channel];
    for (int flip = 0; flip < 2; ++flip) {
      const int byte = (flip == 1 ? 7 - pixel : pixel) * 3 + channel;
      eight.orders[flip].front[vector][lane] = static_cast<int8_t>(byte < 16 ? byte : -1);
      eight.orders[flip].back[vector][lane] = static_cast<int8_t>(byte < 16 ? -1 : byte - 8);
    }
  }
  return eight;
}

#if defined(__x86_64__)
#define SETTRAIN_NORMALISE_AVX2 __attribute__((target("avx2,fma")))

namespace {

// The quotient, rounded as by a division for nearly all divisors, in less time (Markstein, IBM Journal of Research and
// Development 34, 1990). computes_all() says whether it is for all numbers that there can be.
SETTRAIN_NORMALISE_AVX2 inline __m256 divided(__m256 numbers, __m256 divisor, __m256 inverse) {
  const __m256 quotient = _mm256_mul_ps(numbers, inverse);
  return _mm256_fmadd_ps(_mm256_fnmadd_ps(quotient, divisor, numbers), inverse, quotient);
}

SETTRAIN_NORMALISE_AVX2 inline void store(__m256 numbers, float* out) {
  _mm256_storeu_ps(out, numbers);
}

// Rounds halves to the even bfloat16. The numbers are finite.
SETTRAIN_NORMALISE_AVX2 inline void store(__m256 numbers, uint16_t* out) {
  const __m256i bits = _mm256_castps_si256(numbers);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(_mm256_add_epi32(bits, _mm256_set1_epi32(0x7FFF)), odd);
  const __m256i upper = _mm256_srli_epi32(rounded, 16);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                   _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1)));
}

SETTRAIN_NORMALISE_AVX2 inline __m128i load16(const void* bytes) {
  return _mm_loadu_si128(static_cast<const __m128i*>(bytes));
}

template <class Number>
SETTRAIN_NORMALISE_AVX2 void write_row(const PixelRow& row, const EightPixels& eight, Number* image) {
  const __m256 most = _mm256_set1_ps(255), inverse_most = _mm256_set1_ps(1 / 255.0F);
  const EightPixels::Order& order = eight.orders[row.flip];
  const int64_t last = row.width - kFewestPixels;
  for (int64_t next = 0; next < row.width; next += 8) {
    const int64_t x = next < last ? next : last;  // the last eight pixels may repeat some
    const int64_t out_x = row.flip ? last - x : x;
    const __m128i front = load16(row.pixels + x * 3), back = load16(row.pixels + x * 3 + 8);
    for (int64_t v = 0; v < 3; ++v) {
      const __m128i bytes =
          _mm_or_si128(_mm_shuffle_epi8(front, load16(order.front[v])), _mm_shuffle_epi8(back, load16(order.back[v])));
      const __m256 share = divided(_mm256_cvtepi32_ps(_mm256_cvtepu8_epi32(bytes)), most, inverse_most);
      const __m256 centred = _mm256_sub_ps(share, _mm256_load_ps(eight.mean[v]));
      const __m256 numbers = divided(centred, _mm256_load_ps(eight.std[v]), _mm256_load_ps(eight.inverse_std[v]));
      Number* const out = eight.channels_last ? image + (row.y * row.width + out_x) * 3 + v * 8
                                              : image + (v * row.height + row.y) * row.width + out_x;
      store(numbers, out);
    }
  }
}

}  // namespace

bool computes_all(const EightPixels& eight, const float* table) {
  static const bool supported = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (!supported) return false;
  for (int first = 0; first < 256; first += 8) {
    uint8_t pixels[24];
    float numbers[24];
    for (int i = 0; i < 24; ++i) pixels[i] = static_cast<uint8_t>(first + i / 3);
    write_row({pixels, 0, 1, 8, /*flip=*/false}, eight, numbers);
    for (int pixel = 0; pixel < 8; ++pixel) {
      for (int channel = 0; channel < 3; ++channel) {
        const float& number = numbers[eight.channels_last ? pixel * 3 + channel : channel * 8 + pixel];
        if (__builtin_memcmp(&number, table + channel * 256 + first + pixel, sizeof number) != 0) return false;
      }
    }
  }
  return true;
}

void normalise_row(const PixelRow& row, const EightPixels& eight, float* image) {
  write_row(row, eight, image);
}

void normalise_row(const PixelRow& row, const EightPixels& eight, uint16_t* image) {
  write_row(row, eight, image);
}
#else
bool computes_all(const EightPixels&, const float*) {
  return false;
}

void normalise_row(const PixelRow&, const EightPixels&, float*) {}

void normalise_row(const PixelRow&, const EightPixels&, uint16_t*) {}
#endif

}  // namespace settrain
