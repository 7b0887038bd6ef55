#include "src/loader/kernels/resize_kernels.h"

#include <algorithm>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Versions for every processor, for AVX2, and for AVX-512 with VBMI and VNNI. Sums are of whole numbers, so the results
// are equal. Functions for some processors only are local to this file: elsewhere the linker could use them in the
// place of baseline functions. Templates of std are compiled for every processor here too.

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
#define SETTRAIN_VBMI __attribute__((target("avx512f,avx512bw,avx512vl,avx512vbmi,avx512vnni")))

const bool has_avx2 = __builtin_cpu_supports("avx2");
const bool has_vbmi = __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl") &&
                      __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vnni");

// AVX2 and AVX-512 both take the input pixels of an output four at a time. Weights of 0 stand behind its last one.
constexpr int32_t kGroup = 4;

int32_t groups_of(int32_t count) {
  return (count + kGroup - 1) / kGroup;
}

int32_t weight_or_zero(const PixelTaps& taps, int32_t k) {
  return k < taps.count ? taps.weights[k] : 0;
}

// The bytes of a row of three channels that the outputs need.
int64_t needed_bytes(const PixelTaps* taps, int64_t count) {
  int64_t end = 0;
  for (int64_t i = 0; i < count; ++i) end = std::max(end, taps[i].first + taps[i].count);
  return end * 3;
}

// AVX2 multiplies two pairs of 16-bit numbers and adds the products, so a weight is high * 2^11 + low.
constexpr int kLowBits = 11;

struct GroupWeights {
  int32_t high[2], low[2];  // of the first and of the last two pixels; the earlier pixel in the lower half
};

GroupWeights group_weights(const PixelTaps& taps, int32_t group) {
  constexpr int32_t kLow = (1 << kLowBits) - 1;
  GroupWeights weights{};
  for (int pair = 0; pair < 2; ++pair) {
    const int32_t k = group * kGroup + pair * 2, a = weight_or_zero(taps, k), b = weight_or_zero(taps, k + 1);
    weights.high[pair] = (a >> kLowBits & 0xFFFF) | (b >> kLowBits) * (1 << 16);
    weights.low[pair] = (a & kLow) | (b & kLow) << 16;
  }
  return weights;
}

SETTRAIN_AVX2 inline __m128i load16(const uint8_t* bytes) {
  return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
}

SETTRAIN_AVX2 inline __m256i load_two(const uint8_t* a, const uint8_t* b) {
  return _mm256_inserti128_si256(_mm256_castsi128_si256(load16(a)), load16(b), 1);
}

inline void store4(uint8_t* out, int32_t bytes) {
  __builtin_memcpy(out, &bytes, sizeof bytes);
}

// Four rows of three channels at a time, so that each weight is loaded once. Reads 16 bytes for a group, and writes one
// byte behind each output pixel. `weights` are of all groups, one output after the other.
SETTRAIN_AVX2 void resize_four_rows(const uint8_t* const* rows, const PixelTaps* taps, const GroupWeights* weights,
                                    int64_t count, int64_t row_bytes, uint8_t* out) {
  const __m256i zero = _mm256_setzero_si256(), half = _mm256_set1_epi32(kHalf);
  // Pairs of a channel's numbers, with 16 bits each, of the first two pixels and of the last two.
  const __m256i pairs[2] = {
      _mm256_broadcastsi128_si256(_mm_setr_epi8(0, -1, 3, -1, 1, -1, 4, -1, 2, -1, 5, -1, -1, -1, -1, -1)),
      _mm256_broadcastsi128_si256(_mm_setr_epi8(6, -1, 9, -1, 7, -1, 10, -1, 8, -1, 11, -1, -1, -1, -1, -1))};
  for (int64_t i = 0; i < count; ++i, out += 3) {
    __m256i high[2] = {zero, zero}, low[2] = {half, half};  // of rows 0 and 1, and of rows 2 and 3
    int64_t at = taps[i].first * 3;
    for (int32_t k = 0; k < taps[i].count; k += kGroup, at += 3 * kGroup, ++weights) {
      const __m256i pixels[2] = {load_two(rows[0] + at, rows[1] + at), load_two(rows[2] + at, rows[3] + at)};
      for (int pair = 0; pair < 2; ++pair) {
        const __m256i upper = _mm256_set1_epi32(weights->high[pair]), lower = _mm256_set1_epi32(weights->low[pair]);
        for (int r = 0; r < 2; ++r) {
          const __m256i numbers = _mm256_shuffle_epi8(pixels[r], pairs[pair]);
          high[r] = _mm256_add_epi32(high[r], _mm256_madd_epi16(numbers, upper));
          low[r] = _mm256_add_epi32(low[r], _mm256_madd_epi16(numbers, lower));
        }
      }
    }
    for (int r = 0; r < 2; ++r) {
      const __m256i sum = _mm256_add_epi32(_mm256_slli_epi32(high[r], kLowBits), low[r]);
      high[r] = _mm256_srai_epi32(sum, kPrecision);
    }
    // Saturated to 16 and to 8 bits: row 0, row 2 in the lower half, row 1, row 3 in the upper one.
    const __m256i words = _mm256_packus_epi32(high[0], high[1]);
    const __m256i bytes = _mm256_packus_epi16(words, words);
    const __m128i even = _mm256_castsi256_si128(bytes), odd = _mm256_extracti128_si256(bytes, 1);
    store4(out, _mm_cvtsi128_si32(even));
    store4(out + row_bytes, _mm_cvtsi128_si32(odd));
    store4(out + 2 * row_bytes, _mm_extract_epi32(even, 1));
    store4(out + 3 * row_bytes, _mm_extract_epi32(odd, 1));
  }
}

// Returns the number of rows that are done.
SETTRAIN_AVX2 int64_t resize_most_rows(const uint8_t* const* rows, int64_t num_rows, const PixelTaps* taps,
                                       int64_t count, uint8_t* out) {
  // The outputs before the first one that would read behind the needed bytes, or write behind `out`.
  const int64_t needed = needed_bytes(taps, count);
  const auto fits = [needed](const PixelTaps& output) {
    return (output.first + (groups_of(output.count) - 1) * kGroup) * 3 + 16 <= needed;
  };
  const int64_t fast = std::find_if_not(taps, taps + count - 1, fits) - taps;
  std::vector<GroupWeights> weights;
  for (int64_t i = 0; i < fast; ++i) {
    for (int32_t group = 0; group < groups_of(taps[i].count); ++group) weights.push_back(group_weights(taps[i], group));
  }
  int64_t r = 0;
  for (; r + 4 <= num_rows; r += 4) {
    uint8_t* const results = out + r * count * 3;
    resize_four_rows(rows + r, taps, weights.data(), fast, count * 3, results);
    for (int64_t j = 0; j < 4; ++j)
      resize_row(rows[r + j], taps + fast, count - fast, 3, results + (j * count + fast) * 3);
  }
  return r;
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

// VNNI multiplies four bytes by four signed bytes and adds the products to a sum, so a weight is part[0] + 2^8 part[1]
// + 2^16 part[2].
struct WeightParts {
  int8_t part[3];

  explicit WeightParts(int32_t weight) {
    for (int8_t& byte : part) {
      byte = static_cast<int8_t>(weight & 0xFF);
      weight = (weight - byte) >> 8;
    }
  }
};

// The sums of products with each part of the weights.
struct PartSums {
  __m512i part[3];

  SETTRAIN_VBMI PartSums() {
    part[0] = _mm512_set1_epi32(kHalf);
    part[1] = part[2] = _mm512_setzero_si512();
  }

  SETTRAIN_VBMI void add(__m512i bytes, const __m512i* weights) {
    for (int p = 0; p < 3; ++p) part[p] = _mm512_dpbusd_epi32(part[p], bytes, weights[p]);
  }

  // At least 0.
  SETTRAIN_VBMI __m512i rounded() const {
    const __m512i upper = _mm512_add_epi32(part[1], _mm512_slli_epi32(part[2], 8));
    const __m512i sum = _mm512_add_epi32(part[0], _mm512_slli_epi32(upper, 8));
    return _mm512_max_epi32(_mm512_srai_epi32(sum, kPrecision), _mm512_setzero_si512());
  }
};

// Five output pixels of three channels are 15 sums, each of four products: `group` by group, as many as the longest
// needs.
constexpr int64_t kBlock = 5;

struct alignas(64) BlockGroup {
  uint8_t order[64] = {};      // which byte each product is of
  int8_t weights[3][64] = {};  // the parts of its weight
  int64_t at = 0;              // where in the row the 64 bytes begin
  uint64_t readable = 0;       // those of them that the row has, a bit each
};

struct BlockPlan {
  std::vector<BlockGroup> groups;  // one block after the other
  std::vector<int32_t> counts;     // of each block's groups
};

// False where the pixels of a group lie too far apart to be read at once.
bool plan_block(const PixelTaps* taps, int64_t count, int64_t needed, BlockPlan& plan) {
  int32_t longest = 0;
  for (int64_t i = 0; i < count; ++i) longest = std::max(longest, taps[i].count);
  plan.counts.push_back(groups_of(longest));
  for (int32_t g = 0; g < plan.counts.back(); ++g) {
    BlockGroup& group = plan.groups.emplace_back();
    group.at = std::min((taps[0].first + g * kGroup) * 3, needed);
    const int64_t left = needed - group.at;
    group.readable = left < 64 ? (uint64_t{1} << left) - 1 : ~uint64_t{0};
    for (int64_t product = 0; product < count * 3 * kGroup; ++product) {
      const PixelTaps& output = taps[product / (3 * kGroup)];
      const int64_t channel = product / kGroup % 3;
      const int32_t k = g * kGroup + static_cast<int32_t>(product % kGroup);
      if (k >= output.count) continue;
      const int64_t byte = (output.first + k) * 3 + channel - group.at;
      if (byte < 0 || byte >= 64) return false;
      group.order[product] = static_cast<uint8_t>(byte);
      const WeightParts weight(output.weights[k]);
      for (int p = 0; p < 3; ++p) group.weights[p][product] = weight.part[p];
    }
  }
  return true;
}

template <int Rows>
SETTRAIN_VBMI void resize_by_plan(const uint8_t* const* rows, const BlockPlan& plan, int64_t count, uint8_t* out) {
  const BlockGroup* group = plan.groups.data();
  for (int64_t i = 0; i < count; i += kBlock) {
    PartSums sums[Rows];
    const BlockGroup* const end = group + plan.counts[static_cast<size_t>(i / kBlock)];
    for (; group < end; ++group) {
      const __m512i order = _mm512_load_si512(group->order);
      __m512i weights[3];
      for (int p = 0; p < 3; ++p) weights[p] = _mm512_load_si512(group->weights[p]);
      for (int r = 0; r < Rows; ++r) {
        const __m512i bytes = _mm512_maskz_loadu_epi8(group->readable, rows[r] + group->at);
        sums[r].add(_mm512_permutexvar_epi8(order, bytes), weights);
      }
    }
    const int64_t left = count - i;
    for (int r = 0; r < Rows; ++r) {
      uint8_t* const results = out + (r * count + i) * 3;
      const __m128i bytes = _mm512_cvtusepi32_epi8(sums[r].rounded());
      if (left > kBlock) {  // a byte more, which the next block overwrites
        _mm_storeu_si128(reinterpret_cast<__m128i*>(results), bytes);
      } else {
        _mm_mask_storeu_epi8(results, static_cast<__mmask16>((1 << left * 3) - 1), bytes);
      }
    }
  }
}

// False, and nothing is done, where outputs are of pixels that lie too far apart.
SETTRAIN_VBMI bool resize_by_blocks(const uint8_t* const* rows, int64_t num_rows, const PixelTaps* taps, int64_t count,
                                    uint8_t* out) {
  const int64_t needed = needed_bytes(taps, count);
  BlockPlan plan;
  for (int64_t i = 0; i < count; i += kBlock) {
    if (!plan_block(taps + i, std::min(kBlock, count - i), needed, plan)) return false;
  }
  int64_t r = 0;
  for (; r + 4 <= num_rows; r += 4) resize_by_plan<4>(rows + r, plan, count, out + r * count * 3);
  for (; r < num_rows; ++r) resize_by_plan<1>(rows + r, plan, count, out + r * count * 3);
  return true;
}
#endif

}  // namespace

void resize_rows(const uint8_t* const* rows, int64_t num_rows, const PixelTaps* taps, int64_t count, int64_t channels,
                 uint8_t* out) {
  int64_t r = 0;
#if defined(__x86_64__)
  if (has_vbmi && channels == 3 && resize_by_blocks(rows, num_rows, taps, count, out)) return;
  if (has_avx2 && channels == 3) r = resize_most_rows(rows, num_rows, taps, count, out);
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
