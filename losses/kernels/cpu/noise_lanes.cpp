#include "losses/kernels/cpu/noise_lanes.h"

#include "losses/kernels/noise_kernels.h"

namespace settrain::SETTRAIN_INSTRUCTION_SET {
namespace {

template <int kDraws>
SETTRAIN_ALWAYS_INLINE void fill_draws(const NoiseCounter& counter, uint32_t index, int64_t classes, float* rows) {
  constexpr int64_t kAtOnce = kClassesAtOnce<kDraws>;
  for (int64_t begin = 0; begin < classes; begin += kAtOnce) {
    const int64_t count = classes - begin < kAtOnce ? classes - begin : kAtOnce;
    float normals[kDraws][kAtOnce];
    normals_from<kDraws>(counter, index, static_cast<uint32_t>(begin), normals);
    for (int draw = 0; draw < kDraws; ++draw) {
      for (int64_t i = 0; i < count; ++i) rows[draw * classes + begin + i] = normals[draw][i];
    }
  }
}

}  // namespace

void fill_noise_row(const NoiseCounter& counter, int64_t draws, int64_t classes, float* row) {
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

}  // namespace settrain::SETTRAIN_INSTRUCTION_SET
