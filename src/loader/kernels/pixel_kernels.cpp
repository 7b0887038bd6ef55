#include "src/loader/kernels/pixel_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// As in resize_kernels.cpp, there are versions for every processor and for AVX2, with equal results: no version fuses a
// product with a sum.

namespace settrain {
namespace {

inline __attribute__((always_inline)) uint8_t blended(uint8_t other, uint8_t pixel, float factor) {
  const float value = static_cast<float>(other) + factor * static_cast<float>(pixel - other);
  return static_cast<uint8_t>(value <= 0 ? 0 : value >= 255 ? 255 : value);
}

// The sum of the weights is 13, so that no quotient lies near a half.
inline __attribute__((always_inline)) uint8_t thirteenth(int32_t sum) {
  return static_cast<uint8_t>((sum + 6) / 13);
}

template <int64_t Channels>
void look_up_pixels(const uint8_t* tables, int64_t num_pixels, uint8_t* pixels) {
  for (int64_t i = 0; i < num_pixels; ++i, pixels += Channels) {
    for (int64_t c = 0; c < Channels; ++c) pixels[c] = tables[c * 256 + pixels[c]];
  }
}

template <int64_t Channels>
void count_pixels(const uint8_t* pixels, int64_t num_pixels, int64_t* counts) {
  for (int64_t i = 0; i < num_pixels; ++i, pixels += Channels) {
    for (int64_t c = 0; c < Channels; ++c) ++counts[c * 256 + pixels[c]];
  }
}

// Cuts [begin, end) to the steps i at which `start` + i `step` lies within [0, size), all in numbers of 2^-16.
void keep_within(int64_t start, int64_t step, int64_t size, int64_t& begin, int64_t& end) {
  const int64_t last = (size << 16) - 1;
  if (step == 0) {
    if (start < 0 || start > last) end = begin;
    return;
  }
  // The steps at which the place enters and leaves: between the quotients of the two ends, rounded inwards.
  const int64_t enters = step > 0 ? -start : start - last, leaves = step > 0 ? last - start : start;
  const int64_t stride = step > 0 ? step : -step;
  const int64_t first = enters <= 0 ? 0 : (enters + stride - 1) / stride;
  const int64_t behind = leaves < 0 ? 0 : leaves / stride + 1;
  if (first > begin) begin = first;
  if (behind < end) end = behind;
}

template <int64_t Channels>
void warp_pixels(const uint8_t* image, int64_t height, int64_t width, const FixedAffine& map, uint8_t* out) {
  for (int64_t y = 0; y < height; ++y, out += width * Channels) {
    const int64_t x0 = map.x0 + map.xy * y, y0 = map.y0 + map.yy * y;
    int64_t begin = 0, end = width;
    keep_within(x0, map.xx, width, begin, end);
    keep_within(y0, map.yx, height, begin, end);
    if (begin >= end) begin = end = 0;
    __builtin_memset(out, 0, static_cast<size_t>(begin * Channels));
    __builtin_memset(out + end * Channels, 0, static_cast<size_t>((width - end) * Channels));
    int64_t at_x = x0 + map.xx * begin, at_y = y0 + map.yx * begin;
    if (map.xx == 1 << 16 && map.yx == 0) {  // a piece of a row
      const uint8_t* const from = image + ((at_y >> 16) * width + (at_x >> 16)) * Channels;
      __builtin_memcpy(out + begin * Channels, from, static_cast<size_t>((end - begin) * Channels));
      continue;
    }
    for (int64_t x = begin; x < end; ++x, at_x += map.xx, at_y += map.yx) {
      __builtin_memcpy(out + x * Channels, image + ((at_y >> 16) * width + (at_x >> 16)) * Channels, Channels);
    }
  }
}

void blend_rest(const uint8_t* other, float factor, int64_t begin, int64_t length, uint8_t* pixels) {
  for (int64_t j = begin; j < length; ++j) pixels[j] = blended(other[j], pixels[j], factor);
}

// The numbers [begin, end) of a row; `stride` is how far neighbours lie apart.
void smooth_rest(const uint8_t* above, const uint8_t* row, const uint8_t* below, int64_t stride, int64_t begin,
                 int64_t end, uint8_t* out) {
  for (int64_t j = begin; j < end; ++j) {
    const int32_t ring = above[j - stride] + above[j] + above[j + stride] + row[j - stride] + row[j + stride] +
                         below[j - stride] + below[j] + below[j + stride];
    out[j] = thirteenth(ring + 5 * row[j]);
  }
}

#if defined(__x86_64__)
#define SETTRAIN_PIXEL_AVX2 __attribute__((target("avx2")))

const bool pixels_have_avx2 = __builtin_cpu_supports("avx2");

// Eight blended numbers, before they are packed.
SETTRAIN_PIXEL_AVX2 inline __m256i blend_eight(__m128i other, __m128i pixels, __m256 factor) {
  const __m256i o = _mm256_cvtepu8_epi32(other), p = _mm256_cvtepu8_epi32(pixels);
  const __m256 moved = _mm256_mul_ps(factor, _mm256_cvtepi32_ps(_mm256_sub_epi32(p, o)));
  const __m256 value = _mm256_add_ps(_mm256_cvtepi32_ps(o), moved);
  return _mm256_cvttps_epi32(_mm256_min_ps(_mm256_max_ps(value, _mm256_setzero_ps()), _mm256_set1_ps(255)));
}

SETTRAIN_PIXEL_AVX2 inline __m128i load16(const uint8_t* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

// 16 numbers at a time. Returns the number of results.
SETTRAIN_PIXEL_AVX2 int64_t blend_most(const uint8_t* other, float factor, int64_t length, uint8_t* pixels) {
  const __m256 factors = _mm256_set1_ps(factor);
  int64_t j = 0;
  for (; j + 16 <= length; j += 16) {
    const __m128i o = load16(other + j), p = load16(pixels + j);
    const __m256i first = blend_eight(o, p, factors);
    const __m256i second = blend_eight(_mm_srli_si128(o, 8), _mm_srli_si128(p, 8), factors);
    // Packing works within halves; the four quarters come as 0, 2, 1, 3.
    const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0xD8);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(pixels + j), bytes);
  }
  return j;
}

SETTRAIN_PIXEL_AVX2 inline __m256i load_words(const uint8_t* bytes) {
  return _mm256_cvtepu8_epi16(load16(bytes));
}

// The sums of three columns.
SETTRAIN_PIXEL_AVX2 inline __m256i three_rows(const uint8_t* above, const uint8_t* row, const uint8_t* below) {
  return _mm256_add_epi16(_mm256_add_epi16(load_words(above), load_words(row)), load_words(below));
}

// The numbers from `begin` on, 16 at a time while they end before `end`. Returns the first that is left.
SETTRAIN_PIXEL_AVX2 int64_t smooth_most(const uint8_t* above, const uint8_t* row, const uint8_t* below, int64_t stride,
                                        int64_t begin, int64_t end, uint8_t* out) {
  const __m256i six = _mm256_set1_epi16(6);
  // (s * 40330) >> 19 is s / 13, rounded down, for every s below 65536 / 13.
  const __m256i inverse = _mm256_set1_epi16(static_cast<int16_t>(40330));
  int64_t j = begin;
  for (; j + 16 <= end; j += 16) {
    const __m256i sides = _mm256_add_epi16(three_rows(above + j - stride, row + j - stride, below + j - stride),
                                           three_rows(above + j + stride, row + j + stride, below + j + stride));
    const __m256i centre = load_words(row + j);
    const __m256i all = _mm256_add_epi16(_mm256_add_epi16(sides, three_rows(above + j, row + j, below + j)),
                                         _mm256_slli_epi16(centre, 2));
    const __m256i words = _mm256_srli_epi16(_mm256_mulhi_epu16(_mm256_add_epi16(all, six), inverse), 3);
    const __m128i bytes = _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + j), bytes);
  }
  return j;
}
#endif

}  // namespace

void look_up(const uint8_t* tables, int64_t channels, int64_t num_pixels, uint8_t* pixels) {
  channels == 1 ? look_up_pixels<1>(tables, num_pixels, pixels) : look_up_pixels<3>(tables, num_pixels, pixels);
}

void count_numbers(const uint8_t* pixels, int64_t channels, int64_t num_pixels, int64_t* counts) {
  channels == 1 ? count_pixels<1>(pixels, num_pixels, counts) : count_pixels<3>(pixels, num_pixels, counts);
}

void grey_of(const uint8_t* pixels, int64_t num_pixels, uint8_t* out) {
  for (int64_t i = 0; i < num_pixels; ++i, pixels += 3)
    out[i] = static_cast<uint8_t>((pixels[0] * 19595 + pixels[1] * 38470 + pixels[2] * 7471 + 0x8000) >> 16);
}

void blend(const uint8_t* other, float factor, int64_t length, uint8_t* pixels) {
  int64_t done = 0;
#if defined(__x86_64__)
  if (pixels_have_avx2) done = blend_most(other, factor, length, pixels);
#endif
  blend_rest(other, factor, done, length, pixels);
}

void smooth_row(const uint8_t* above, const uint8_t* row, const uint8_t* below, int64_t channels, int64_t width,
                uint8_t* out) {
  const int64_t last = (width - 1) * channels;
  for (int64_t c = 0; c < channels; ++c) {
    out[c] = row[c];
    out[last + c] = row[last + c];
  }
  int64_t begin = channels;
#if defined(__x86_64__)
  if (pixels_have_avx2) begin = smooth_most(above, row, below, channels, begin, last, out);
#endif
  smooth_rest(above, row, below, channels, begin, last, out);
}

void warp(const uint8_t* image, int64_t height, int64_t width, int64_t channels, const FixedAffine& map, uint8_t* out) {
  channels == 1 ? warp_pixels<1>(image, height, width, map, out) : warp_pixels<3>(image, height, width, map, out);
}

}  // namespace settrain
