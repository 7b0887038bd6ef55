#include "src/papers/level_sets/level_set_figures.h"

#include <fmt/format.h>

namespace settrain {
namespace {

// As the captions of figures 1 and 6 have it.
constexpr int64_t kReplications = 100;

LevelSetPanel noised(int k, const char* epsilon, int draws) {
  return {"noised_topk",
          {fmt::format("k={}", k), fmt::format("epsilon={}", epsilon), fmt::format("num_draws={}", draws), "margin=1"}};
}

// The smoothed hinge divides the scores by K: with the margin 1/K in that unit it is the smoothing of topk_hinge, whose
// margin is 1.
LevelSetPanel smoothed(int k, const char* tau) {
  return {"smoothed_topk_hinge",
          {fmt::format("k={}", k), fmt::format("tau={}", tau), fmt::format("alpha={}", 1.0 / k)}};
}

// The losses of Table 1 in the order of the paper's panels (a) to (j).
std::vector<LevelSetPanel> losses_of_table_1(int k) {
  const std::vector<std::string> size{fmt::format("k={}", k)};
  LevelSetPanel imbalanced = noised(k, "1.0", 30);
  imbalanced.loss = "noised_topk_imbalanced";
  imbalanced.settings.back() = "max_margin=1.5";
  imbalanced.settings.push_back("scale=1");
  return {{"topk_zero_one", size},     {"cross_entropy", {}},
          {"topk_hinge", size},        {"topk_hinge_calibrated", size},
          {"topk_hinge_convex", size}, smoothed(k, "0.1"),
          smoothed(k, "1.0"),          noised(k, "0.3", 30),
          noised(k, "1.0", 30),        imbalanced};
}

std::vector<LevelSetPanel> by_draws() {
  std::vector<LevelSetPanel> panels;
  for (const int k : {1, 2}) {
    for (const int draws : {1, 3, 10, 30, 100}) panels.push_back(noised(k, "1.0", draws));
  }
  return panels;
}

std::vector<LevelSetPanel> by_epsilon() {
  std::vector<LevelSetPanel> panels;
  for (const int k : {1, 2}) {
    for (const char* epsilon : {"0.01", "0.1", "0.3", "0.6", "1.0"}) panels.push_back(noised(k, epsilon, 50));
  }
  return panels;
}

}  // namespace

std::vector<LevelSetFigure> level_set_figures() {
  return {{"1", "level-sets-k2", "Losses for sets of K = 2", 5, losses_of_table_1(2), kReplications},
          {"4", "level-sets-draws", "The noised top-K loss by the number of draws", 5, by_draws(), 1},
          {"5", "level-sets-epsilon", "The noised top-K loss by epsilon", 5, by_epsilon(), kReplications},
          {"6", "level-sets-k1", "Losses for sets of K = 1", 5, losses_of_table_1(1), kReplications}};
}

}  // namespace settrain
