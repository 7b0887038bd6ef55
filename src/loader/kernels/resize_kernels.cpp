#include "src/loader/kernels/resize_kernels.h"

// Compiled once for the baseline and once for AVX2, from the same source; sums are of whole numbers, so the results are
// equal. The functions are inlined by force, so that no copy made for AVX2 can end up in code for the baseline.
#define SETTRAIN_ALWAYS_INLINE inline __attribute__((always_inline))

namespace settrain {
namespace {

constexpr int kPrecision = 22;
constexpr int32_t kHalf = 1 << (kPrecision - 1);

typedef uint8_t Bytes __attribute__((vector_size(4)));
typedef int32_t Sums __attribute__((vector_size(16)));

// Weights are positive and add up to about 1: nothing has to be clamped from below.
SETTRAIN_ALWAYS_INLINE uint8_t rounded(int32_t sum) {
  const int32_t value = sum >> kPrecision;
  return static_cast<uint8_t>(value > 255 ? 255 : value);
}

// Three channels and the next pixel's first, which is left out, at a time.
SETTRAIN_ALWAYS_INLINE void resize_row_of_colour(const uint8_t* row, const PixelTaps* taps, int64_t count,
                                                 uint8_t* out) {
  for (int64_t i = 0; i < count; ++i, out += 3) {
    const uint8_t* pixel = row + 3 * taps[i].first;
    Sums sums = {kHalf, kHalf, kHalf, kHalf};
    for (int32_t k = 0; k < taps[i].count; ++k, pixel += 3) {
      Bytes bytes;
      __builtin_memcpy(&bytes, pixel, sizeof bytes);
      sums += __builtin_convertvector(bytes, Sums) * taps[i].weights[k];
    }
    out[0] = rounded(sums[0]);
    out[1] = rounded(sums[1]);
    out[2] = rounded(sums[2]);
  }
}

SETTRAIN_ALWAYS_INLINE void resize_row_of_grey(const uint8_t* row, const PixelTaps* taps, int64_t count, uint8_t* out) {
  for (int64_t i = 0; i < count; ++i) {
    int32_t sum = kHalf;
    for (int32_t k = 0; k < taps[i].count; ++k) sum += row[taps[i].first + k] * taps[i].weights[k];
    out[i] = rounded(sum);
  }
}

SETTRAIN_ALWAYS_INLINE void resize_any_row(const uint8_t* row, const PixelTaps* taps, int64_t count, int64_t channels,
                                           uint8_t* out) {
  if (channels == 3) {
    resize_row_of_colour(row, taps, count, out);
  } else {
    resize_row_of_grey(row, taps, count, out);
  }
}

// So many sums at a time stay in registers or close by.
constexpr int64_t kChunk = 64;

SETTRAIN_ALWAYS_INLINE void mix(const uint8_t* const* rows, const int32_t* weights, int32_t count, int64_t length,
                                uint8_t* out) {
  int64_t begin = 0;
  for (; begin + kChunk <= length; begin += kChunk) {
    int32_t sums[kChunk];
    for (int64_t j = 0; j < kChunk; ++j) sums[j] = kHalf;
    for (int32_t k = 0; k < count; ++k) {
      const uint8_t* row = rows[k] + begin;
      for (int64_t j = 0; j < kChunk; ++j) sums[j] += row[j] * weights[k];
    }
    for (int64_t j = 0; j < kChunk; ++j) out[begin + j] = rounded(sums[j]);
  }
  for (; begin < length; ++begin) {
    int32_t sum = kHalf;
    for (int32_t k = 0; k < count; ++k) sum += rows[k][begin] * weights[k];
    out[begin] = rounded(sum);
  }
}

using ResizeRow = void (*)(const uint8_t*, const PixelTaps*, int64_t, int64_t, uint8_t*);
using MixRows = void (*)(const uint8_t* const*, const int32_t*, int32_t, int64_t, uint8_t*);

void resize_row_baseline(const uint8_t* row, const PixelTaps* taps, int64_t count, int64_t channels, uint8_t* out) {
  resize_any_row(row, taps, count, channels, out);
}

void mix_baseline(const uint8_t* const* rows, const int32_t* weights, int32_t count, int64_t length, uint8_t* out) {
  mix(rows, weights, count, length, out);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void resize_row_avx2(const uint8_t* row, const PixelTaps* taps, int64_t count,
                                                     int64_t channels, uint8_t* out) {
  resize_any_row(row, taps, count, channels, out);
}

__attribute__((target("avx2"))) void mix_avx2(const uint8_t* const* rows, const int32_t* weights, int32_t count,
                                              int64_t length, uint8_t* out) {
  mix(rows, weights, count, length, out);
}
#endif

bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2");
#else
  return false;
#endif
}

}  // namespace

void resize_row(const uint8_t* row, const PixelTaps* taps, int64_t count, int64_t channels, uint8_t* out) {
#if defined(__x86_64__)
  static const ResizeRow chosen = has_avx2() ? resize_row_avx2 : resize_row_baseline;
  chosen(row, taps, count, channels, out);
#else
  resize_row_baseline(row, taps, count, channels, out);
#endif
}

void mix_rows(const uint8_t* const* rows, const int32_t* weights, int32_t count, int64_t length, uint8_t* out) {
#if defined(__x86_64__)
  static const MixRows chosen = has_avx2() ? mix_avx2 : mix_baseline;
  chosen(rows, weights, count, length, out);
#else
  mix_baseline(rows, weights, count, length, out);
#endif
}

}  // namespace settrain
