#include <algorithm>
#include <vector>

#include "losses/kernels/noised_hinge_kernels.h"

namespace settrain {

void noised_hinge_gradient_rows(const NoisedHinge& hinge, int64_t begin, int64_t end, const float* losses,
                                const int32_t* chosen, const float* outer, float* gradient) {
  const int64_t classes = hinge.classes, draws = hinge.draws;
  std::vector<int32_t> distinct;  // classes that are chosen
  for (int64_t i = begin; i < end; ++i) {
    float* const row = gradient + i * classes;
    std::fill_n(row, classes, losses[i] != losses[i] ? losses[i] : 0);
    if (!(losses[i] > 0)) continue;
    distinct.clear();
    for (int64_t draw = 0; draw < draws; ++draw) {
      const int32_t j = chosen[i * draws + draw];
      if (row[j] == 0) distinct.push_back(j);
      row[j] += 1;
    }
    const float slope = outer[i] * hinge.factor;
    if (row[hinge.labels[i]] == 0) row[hinge.labels[i]] = -slope;
    for (const int32_t j : distinct) {
      const float share = row[j] / static_cast<float>(draws);
      row[j] = slope * (j == hinge.labels[i] ? share - 1 : share);
    }
  }
}

}  // namespace settrain
