#include "losses/kernels/noise_kernels.h"
#include "src/core/normal.h"

// Compiled once for the baseline and once for AVX2 with FMA, from the same source; the results are equal to the last
// bit. The functions are inlined by force, so that no copy made for AVX2 can end up in code for the baseline.
#define SETTRAIN_ALWAYS_INLINE inline __attribute__((always_inline))

namespace settrain {
namespace {

constexpr int64_t kChunk = 64;  // classes at a time: the words stay in the first-level cache

/// The draws [4 * index, 4 * index + kDraws), laid out as noise_word() says.
template <int kDraws>
SETTRAIN_ALWAYS_INLINE void fill_draws(const NoiseCounter& counter, uint32_t index, int64_t classes, float* rows) {
  constexpr int kClasses = 4 / kDraws;
  uint32_t words[kDraws][kChunk];
  for (int64_t begin = 0; begin < classes; begin += kChunk) {
    const int64_t count = classes - begin < kChunk ? classes - begin : kChunk;
    for (int64_t group = 0; group < kChunk / kClasses; ++group) {
      const uint32_t item = static_cast<uint32_t>(begin / kClasses + group);
      const PhiloxBlock block = philox({{item, index, counter.position, counter.step}}, counter.key);
      for (int i = 0; i < kClasses; ++i) {
        for (int draw = 0; draw < kDraws; ++draw) words[draw][group * kClasses + i] = block.word[i * kDraws + draw];
      }
    }
    for (int draw = 0; draw < kDraws; ++draw) {
      float* out = rows + draw * classes + begin;
      for (int64_t i = 0; i < count; ++i) out[i] = normal(words[draw][i]);
    }
  }
}

SETTRAIN_ALWAYS_INLINE void fill(const NoiseCounter& counter, int64_t draws, int64_t classes, float* row) {
  for (int64_t draw = 0; draw < draws; draw += 4) {
    const DrawBlock block = draw_block(static_cast<uint32_t>(draw), static_cast<uint32_t>(draws));
    float* rows = row + draw * classes;
    switch (block.draws) {
      case 1:
        fill_draws<1>(counter, block.index, classes, rows);
        break;
      case 2:
        fill_draws<2>(counter, block.index, classes, rows);
        break;
      case 3:
        fill_draws<3>(counter, block.index, classes, rows);
        break;
      default:
        fill_draws<4>(counter, block.index, classes, rows);
    }
  }
}

void fill_baseline(const NoiseCounter& counter, int64_t draws, int64_t classes, float* row) {
  fill(counter, draws, classes, row);
}

#if defined(__x86_64__)
__attribute__((target("avx2,fma"))) void fill_avx2(const NoiseCounter& counter, int64_t draws, int64_t classes,
                                                   float* row) {
  fill(counter, draws, classes, row);
}
#endif

auto choose_fill() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return fill_avx2;
#endif
  return fill_baseline;
}

}  // namespace

void fill_noise_row(const NoiseCounter& counter, int64_t draws, int64_t classes, float* row) {
  static const auto chosen = choose_fill();
  chosen(counter, draws, classes, row);
}

}  // namespace settrain
