#include "losses/kernels/noised_hinge_kernels.h"

namespace settrain {

int64_t noised_hinge_scratch(const NoisedHinge& hinge) {
  constexpr int64_t kArrays = 7, kSpare = 128;
  return kArrays * (hinge.classes + kSpare) * static_cast<int64_t>(sizeof(float));
}

void noised_hinge_gradient_rows(const NoisedHinge& hinge, int64_t begin, int64_t end, const float* losses,
                                const int32_t* chosen, const float* outer, float* gradient) {
  const int64_t classes = hinge.classes, draws = hinge.draws;
  for (int64_t i = begin; i < end; ++i) {
    float* row = gradient + i * classes;
    const float nothing = losses[i] != losses[i] ? losses[i] : 0;
    for (int64_t j = 0; j < classes; ++j) row[j] = nothing;
    if (!(losses[i] > 0)) continue;
    const float share = outer[i] * hinge.factor, of_draw = share / static_cast<float>(draws);
    for (int64_t draw = 0; draw < draws; ++draw) row[chosen[i * draws + draw]] += of_draw;
    row[hinge.labels[i]] -= share;
  }
}

}  // namespace settrain
