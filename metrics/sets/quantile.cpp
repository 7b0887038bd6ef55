#include "metrics/sets/quantile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace settrain {

int64_t conformal_rank(int64_t images, double alpha) {
  const double next = static_cast<double>(images) + 1;
  return std::max<int64_t>(1, static_cast<int64_t>(std::ceil(next * (1 - alpha) - 1e-14 * next)));
}

int64_t images_needed(double alpha) {
  constexpr double kMost = 1e18;
  return std::max<int64_t>(1, static_cast<int64_t>(std::min(kMost, std::ceil((1 - alpha) / alpha * (1 - 1e-13)))));
}

DoubleDouble conformal_quantile(std::vector<DoubleDouble> scores, double alpha) {
  const int64_t rank = conformal_rank(std::ssize(scores), alpha);
  if (rank > std::ssize(scores)) return std::numeric_limits<double>::infinity();
  std::nth_element(scores.begin(), scores.begin() + rank - 1, scores.end());
  return scores[static_cast<size_t>(rank - 1)];
}

std::vector<DoubleDouble> conformal_quantiles(const std::vector<DoubleDouble>& scores,
                                              const std::vector<int64_t>& group_of, int64_t groups, double alpha) {
  std::vector<std::vector<DoubleDouble>> of_group(static_cast<size_t>(groups));
  for (size_t i = 0; i < scores.size(); ++i) {
    if (group_of[i] >= 0) of_group[static_cast<size_t>(group_of[i])].push_back(scores[i]);
  }
  std::vector<DoubleDouble> quantiles;
  for (std::vector<DoubleDouble>& group : of_group) quantiles.push_back(conformal_quantile(std::move(group), alpha));
  return quantiles;
}

}  // namespace settrain
