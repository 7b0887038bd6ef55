#include "datasets/decoding/jpeg_pixels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include <cstring>

namespace settrain::jpeg {
namespace {

// Weights of the inverse DCT, times 2^13, in pairs for _mm256_madd_epi16: sums of the constants of Loeffler, Ligtenberg
// and Moschytz (ICASSP 1989), which libjpeg rounds one by one.
struct Pair {
  int16_t first, second;
};
constexpr int kPrecision = 13;
constexpr int kFirstPass = 2;  // bits more that the first pass keeps

SETTRAIN_JPEG_AVX2 inline __m256i weights(Pair pair) {
  return _mm256_set1_epi32(static_cast<uint16_t>(pair.first) | static_cast<int32_t>(pair.second) << 16);
}

// The numbers of two rows side by side: those of columns 0 to 3 in the lower half, of 4 to 7 in the upper one.
SETTRAIN_JPEG_AVX2 inline __m256i paired(__m128i a, __m128i b) {
  return _mm256_set_m128i(_mm_unpackhi_epi16(a, b), _mm_unpacklo_epi16(a, b));
}

// x * 2^13, in 32 bits.
SETTRAIN_JPEG_AVX2 inline __m256i scaled_up(__m128i x) {
  return _mm256_srai_epi32(paired(_mm_setzero_si128(), x), 16 - kPrecision);
}

SETTRAIN_JPEG_AVX2 inline __m256i weighted(__m256i pairs, Pair pair) {
  return _mm256_madd_epi16(pairs, weights(pair));
}

// An inverse DCT of each column, times 2^(13 - kShift), rounded. Damaged files have numbers that do not fit: sums of
// two rows are cut to 16 bits, and results are saturated to them, as by libjpeg's own vectors.
template <int kShift>
SETTRAIN_JPEG_AVX2 inline void transform_columns(__m128i (&rows)[8]) {
  const __m256i half = _mm256_set1_epi32(1 << (kShift - 1));
  const __m256i sum = _mm256_add_epi32(scaled_up(_mm_add_epi16(rows[0], rows[4])), half);
  const __m256i difference = _mm256_add_epi32(scaled_up(_mm_sub_epi16(rows[0], rows[4])), half);
  const __m256i inner = paired(rows[2], rows[6]);
  const __m256i narrow = weighted(inner, {4433, -10704}), wide = weighted(inner, {10703, 4433});
  const __m256i shared = paired(_mm_add_epi16(rows[7], rows[3]), _mm_add_epi16(rows[5], rows[1]));
  const __m256i far = weighted(shared, {-6436, 9633}), near = weighted(shared, {9633, 6437});
  const __m256i outer_odd = paired(rows[7], rows[1]), inner_odd = paired(rows[5], rows[3]);
  const __m256i odd[4] = {_mm256_add_epi32(weighted(outer_odd, {-7373, 4926}), near),
                          _mm256_add_epi32(weighted(inner_odd, {-20995, 4177}), far),
                          _mm256_add_epi32(weighted(inner_odd, {-4176, -20995}), near),
                          _mm256_add_epi32(weighted(outer_odd, {-4927, -7373}), far)};
  const __m256i even[4] = {_mm256_add_epi32(sum, wide), _mm256_add_epi32(difference, narrow),
                           _mm256_sub_epi32(difference, narrow), _mm256_sub_epi32(sum, wide)};
  for (int i = 0; i < 4; ++i) {
    const __m256i upper = _mm256_srai_epi32(_mm256_add_epi32(even[i], odd[i]), kShift);
    const __m256i lower = _mm256_srai_epi32(_mm256_sub_epi32(even[i], odd[i]), kShift);
    const __m256i both = _mm256_permute4x64_epi64(_mm256_packs_epi32(upper, lower), 0xD8);
    rows[i] = _mm256_castsi256_si128(both);
    rows[7 - i] = _mm256_extracti128_si256(both, 1);
  }
}

SETTRAIN_JPEG_AVX2 inline void transpose(__m128i (&rows)[8]) {
  __m128i pairs[8], fours[8];
  for (int i = 0; i < 4; ++i) {
    pairs[2 * i] = _mm_unpacklo_epi16(rows[2 * i], rows[2 * i + 1]);
    pairs[2 * i + 1] = _mm_unpackhi_epi16(rows[2 * i], rows[2 * i + 1]);
  }
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      fours[4 * i + 2 * j] = _mm_unpacklo_epi32(pairs[4 * i + j], pairs[4 * i + 2 + j]);
      fours[4 * i + 2 * j + 1] = _mm_unpackhi_epi32(pairs[4 * i + j], pairs[4 * i + 2 + j]);
    }
  }
  for (int i = 0; i < 4; ++i) {
    rows[2 * i] = _mm_unpacklo_epi64(fours[i], fours[4 + i]);
    rows[2 * i + 1] = _mm_unpackhi_epi64(fours[i], fours[4 + i]);
  }
}

// For each of three vectors of a row's bytes, which byte of a channel's vector it takes where; -1 is none.
struct Interleaving {
  alignas(16) int8_t from[3][3][16];

  constexpr Interleaving() : from() {
    for (int part = 0; part < 3; ++part) {
      for (int i = 0; i < 16; ++i) {
        const int place = 16 * part + i;
        for (int c = 0; c < 3; ++c) from[part][c][i] = static_cast<int8_t>(place % 3 == c ? place / 3 : -1);
      }
    }
  }
};
constexpr Interleaving kInterleaving;

SETTRAIN_JPEG_AVX2 inline void store_rgb(__m128i red, __m128i green, __m128i blue, uint8_t* out) {
  for (int part = 0; part < 3; ++part) {
    const auto picked = [&](__m128i channel, int c) SETTRAIN_JPEG_AVX2 {
      return _mm_shuffle_epi8(channel, _mm_load_si128(reinterpret_cast<const __m128i*>(kInterleaving.from[part][c])));
    };
    const __m128i bytes = _mm_or_si128(_mm_or_si128(picked(red, 0), picked(green, 1)), picked(blue, 2));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + 16 * part), bytes);
  }
}

SETTRAIN_JPEG_AVX2 inline __m128i load16(const uint8_t* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

SETTRAIN_JPEG_AVX2 inline __m256i widened(const uint8_t* bytes) {
  return _mm256_cvtepu8_epi16(load16(bytes));
}

SETTRAIN_JPEG_AVX2 inline __m128i narrowed(__m256i words) {
  return _mm256_castsi256_si128(_mm256_permute4x64_epi64(_mm256_packus_epi16(words, words), 0xD8));
}

// (factor * x + 2^15) / 2^16, rounded down.
SETTRAIN_JPEG_AVX2 inline __m256i scaled(__m256i x, int16_t factor) {
  const __m256i twice = _mm256_mulhi_epi16(_mm256_add_epi16(x, x), _mm256_set1_epi16(factor));
  return _mm256_srai_epi16(_mm256_add_epi16(twice, _mm256_set1_epi16(1)), 1);
}

// Pixels of which `y`, `cb` and `cr` point to the first of 16. Factors of libjpeg, times 2^16: 1.402 and 1.772, less a
// whole number, and -0.34414 and -0.71414, plus one.
SETTRAIN_JPEG_AVX2 inline void convert16(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, uint8_t* out) {
  constexpr int16_t kRed = 26345, kBlue = -14942;
  constexpr Pair kGreen = {-22554, 18734};
  const __m256i centre = _mm256_set1_epi16(128), half = _mm256_set1_epi32(1 << 15);
  const __m256i luma = widened(y);
  const __m256i b = _mm256_sub_epi16(widened(cb), centre), r = _mm256_sub_epi16(widened(cr), centre);
  const __m256i red = _mm256_add_epi16(_mm256_add_epi16(luma, r), scaled(r, kRed));
  const __m256i blue = _mm256_add_epi16(_mm256_add_epi16(luma, _mm256_add_epi16(b, b)), scaled(b, kBlue));
  const auto green_of = [&](__m256i pairs) SETTRAIN_JPEG_AVX2 {
    return _mm256_srai_epi32(_mm256_add_epi32(_mm256_madd_epi16(pairs, weights(kGreen)), half), 16);
  };
  const __m256i differences =
      _mm256_packs_epi32(green_of(_mm256_unpacklo_epi16(b, r)), green_of(_mm256_unpackhi_epi16(b, r)));
  const __m256i green = _mm256_add_epi16(luma, _mm256_sub_epi16(differences, r));
  store_rgb(narrowed(red), narrowed(green), narrowed(blue), out);
}

// Calls write(i, to) for each 16 of `count` pixels; the last ones go by way of a buffer.
template <class Write>
SETTRAIN_JPEG_AVX2 inline __attribute__((always_inline)) void for_each_16(int64_t count, uint8_t* out,
                                                                          const Write& write) {
  int64_t i = 0;
  for (; i + 16 <= count; i += 16) write(i, out + 3 * i);
  if (i == count) return;
  uint8_t last[48];
  write(i, last);
  std::memcpy(out + 3 * i, last, static_cast<size_t>(3 * (count - i)));
}

}  // namespace

SETTRAIN_JPEG_AVX2 void inverse_dct(const int16_t* coefficients, const int16_t* quantisation, uint8_t* samples,
                                    int64_t stride) {
  __m128i rows[8], others = _mm_setzero_si128();
  for (int i = 0; i < 8; ++i) {
    const __m128i row = _mm_load_si128(reinterpret_cast<const __m128i*>(coefficients + 8 * i));
    if (i > 0) others = _mm_or_si128(others, row);
    rows[i] = _mm_mullo_epi16(row, _mm_load_si128(reinterpret_cast<const __m128i*>(quantisation + 8 * i)));
  }
  if (_mm_testz_si128(others, others)) {  // libjpeg's short cut, which differs for numbers that do not fit
    const __m128i means = _mm_slli_epi16(rows[0], kFirstPass);
    for (__m128i& row : rows) row = means;
  } else {
    transform_columns<kPrecision - kFirstPass>(rows);
  }
  transpose(rows);
  transform_columns<kPrecision + kFirstPass + 3>(rows);  // 3: the factor 8 of a DCT in two directions
  transpose(rows);
  const __m128i sign = _mm_set1_epi8(static_cast<char>(0x80));  // + 128
  for (int i = 0; i < 8; i += 2) {
    const __m128i bytes = _mm_xor_si128(_mm_packs_epi16(rows[i], rows[i + 1]), sign);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(samples + i * stride), bytes);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(samples + (i + 1) * stride), _mm_unpackhi_epi64(bytes, bytes));
  }
}

SETTRAIN_JPEG_AVX2 void enlarge_row(const uint8_t* near, const uint8_t* far, Subsampling subsampling, int64_t count,
                                    uint8_t* out) {
  const bool both = subsampling == Subsampling::kBoth;
  const __m256i three = _mm256_set1_epi16(3);
  // libjpeg's way to round halves up and down in turn.
  const __m256i left_half = _mm256_set1_epi16(both ? 8 : 1), right_half = _mm256_set1_epi16(both ? 7 : 2);
  const __m128i shift = _mm_cvtsi32_si128(both ? 4 : 2);
  const auto sample = [&](int64_t i) SETTRAIN_JPEG_AVX2 {
    const __m256i value = widened(near + i);
    return both ? _mm256_add_epi16(_mm256_mullo_epi16(value, three), widened(far + i)) : value;
  };
  for (int64_t i = 0; i < count; i += 16) {
    const __m256i centre = _mm256_mullo_epi16(sample(i), three);
    const __m256i left = _mm256_srl_epi16(_mm256_add_epi16(_mm256_add_epi16(centre, sample(i - 1)), left_half), shift);
    const __m256i right =
        _mm256_srl_epi16(_mm256_add_epi16(_mm256_add_epi16(centre, sample(i + 1)), right_half), shift);
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out + 2 * i), _mm256_or_si256(left, _mm256_slli_epi16(right, 8)));
  }
}

SETTRAIN_JPEG_AVX2 void convert_row(const uint8_t* y, const uint8_t* cb, const uint8_t* cr, int64_t count,
                                    uint8_t* out) {
  if (!cb) {
    for_each_16(count, out, [&](int64_t i, uint8_t* to) SETTRAIN_JPEG_AVX2 {
      const __m128i grey = load16(y + i);
      store_rgb(grey, grey, grey, to);
    });
    return;
  }
  for_each_16(count, out, [&](int64_t i, uint8_t* to) SETTRAIN_JPEG_AVX2 { convert16(y + i, cb + i, cr + i, to); });
}

}  // namespace settrain::jpeg

#endif
