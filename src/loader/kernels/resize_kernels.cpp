#include "src/loader/kernels/resize_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Versions for every processor and for AVX2. Sums are of whole numbers, so the results are equal. AVX2 functions are
// local to this file: elsewhere the linker could use them in the place of baseline functions.

namespace settrain {
namespace {

constexpr int kPrecision = 22;
constexpr int32_t kHalf = 1 << (kPrecision - 1);

// Sums are below 0 or above 255 where weights are negative.
inline __attribute__((always_inline)) uint8_t rounded(int32_t sum) {
  const int32_t value = sum >> kPrecision;
  return static_cast<uint8_t>(value < 0 ? 0 : value > 255 ? 255 : value);
}

void resize_row(const uint8_t* row, const PixelTaps* taps, int64_t count, int64_t channels, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    for (int64_t c = 0; c < channels; ++c) {
      int32_t sum = kHalf;
      const uint8_t* pixel = row + taps[i].first * channels + c;
      for (int32_t k = 0; k < taps[i].count; ++k) sum += pixel[k * channels] * taps[i].weights[k];
      *out++ = rounded(sum);
    }
  }
}

void mix(const uint8_t* const* rows, const int32_t* weights, int32_t count, int64_t begin, int64_t end, uint8_t* out) {
  for (int64_t j = begin; j < end; ++j) {
    int32_t sum = kHalf;
    for (int32_t k = 0; k < count; ++k) sum += rows[k][j] * weights[k];
    out[j] = rounded(sum);
  }
}

#if defined(__x86_64__)
#define SETTRAIN_AVX2 __attribute__((target("avx2")))

const bool has_avx2 = __builtin_cpu_supports("avx2");

SETTRAIN_AVX2 inline __m128i load4(const uint8_t* bytes) {
  int32_t four = 0;
  __builtin_memcpy(&four, bytes, sizeof four);
  return _mm_cvtsi32_si128(four);
}

// Loads two pixels, each with an unused byte behind it, as 2 x 4 numbers.
SETTRAIN_AVX2 inline __m256i load_two(const uint8_t* a, const uint8_t* b) {
  return _mm256_cvtepu8_epi32(_mm_unpacklo_epi32(load4(a), load4(b)));
}

// Four rows of three channels at a time, so that each weight is loaded once.
SETTRAIN_AVX2 void resize_four_rows(const uint8_t* const* rows, const PixelTaps* taps, int64_t count, uint8_t* out) {
  const __m256i half = _mm256_set1_epi32(kHalf);
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = taps[i].first * 3;
    __m256i first = half, second = half;
    for (int32_t k = 0; k < taps[i].count; ++k, at += 3) {
      const __m256i weight = _mm256_set1_epi32(taps[i].weights[k]);
      first = _mm256_add_epi32(first, _mm256_mullo_epi32(load_two(rows[0] + at, rows[1] + at), weight));
      second = _mm256_add_epi32(second, _mm256_mullo_epi32(load_two(rows[2] + at, rows[3] + at), weight));
    }
    // Saturated to 16 and to 8 bits: row 0, row 2 in the lower half, row 1, row 3 in the upper one.
    const __m256i words =
        _mm256_packus_epi32(_mm256_srai_epi32(first, kPrecision), _mm256_srai_epi32(second, kPrecision));
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const __m128i lower = _mm256_castsi256_si128(bytes), upper = _mm256_extracti128_si256(bytes, 1);
    const int32_t pixels[4] = {_mm_cvtsi128_si32(lower), _mm_cvtsi128_si32(upper), _mm_extract_epi32(lower, 1),
                               _mm_extract_epi32(upper, 1)};
    for (int r = 0; r < 4; ++r) __builtin_memcpy(out + (r * count + i) * 3, &pixels[r], 3);
  }
}

SETTRAIN_AVX2 inline __m256i load8(const uint8_t* bytes) {
  return _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes)));
}

// 32 numbers at a time. Returns the number of results.
SETTRAIN_AVX2 int64_t mix_most(const uint8_t* const* rows, const int32_t* weights, int32_t count, int64_t length,
                               uint8_t* out) {
  const __m256i half = _mm256_set1_epi32(kHalf);
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);  // packing works within halves
  int64_t j = 0;
  for (; j + 32 <= length; j += 32) {
    __m256i a = half, b = half, c = half, d = half;
    for (int32_t k = 0; k < count; ++k) {
      const uint8_t* row = rows[k] + j;
      const __m256i weight = _mm256_set1_epi32(weights[k]);
      a = _mm256_add_epi32(a, _mm256_mullo_epi32(load8(row), weight));
      b = _mm256_add_epi32(b, _mm256_mullo_epi32(load8(row + 8), weight));
      c = _mm256_add_epi32(c, _mm256_mullo_epi32(load8(row + 16), weight));
      d = _mm256_add_epi32(d, _mm256_mullo_epi32(load8(row + 24), weight));
    }
    const __m256i ab = _mm256_packus_epi32(_mm256_srai_epi32(a, kPrecision), _mm256_srai_epi32(b, kPrecision));
    const __m256i cd = _mm256_packus_epi32(_mm256_srai_epi32(c, kPrecision), _mm256_srai_epi32(d, kPrecision));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + j),
                        _mm256_permutevar8x32_epi32(_mm256_packus_epi16(ab, cd), order));
  }
  return j;
}
#endif

}  // namespace

void resize_rows(const uint8_t* const* rows, int64_t num_rows, const PixelTaps* taps, int64_t count, int64_t channels,
                 uint8_t* out) {
  int64_t r = 0;
#if defined(__x86_64__)
  if (has_avx2 && channels == 3) {
    for (; r + 4 <= num_rows; r += 4) resize_four_rows(rows + r, taps, count, out + r * count * 3);
  }
#endif
  for (; r < num_rows; ++r) resize_row(rows[r], taps, count, channels, out + r * count * channels);
}

void mix_rows(const uint8_t* const* rows, const int32_t* weights, int32_t count, int64_t length, uint8_t* out) {
  int64_t done = 0;
#if defined(__x86_64__)
  if (has_avx2) done = mix_most(rows, weights, count, length, out);
#endif
  mix(rows, weights, count, done, length, out);
}

}  // namespace settrain
