#include "src/data_tools/lorenz.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

namespace settrain {

std::vector<double> lorenz_curve(std::vector<int64_t> counts) {
  std::sort(counts.begin(), counts.end());
  if (std::all_of(counts.begin(), counts.end(), [](int64_t count) { return count == 0; })) {
    std::fill(counts.begin(), counts.end(), 1);
  }
  const auto all = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::vector<double> curve{0.0};
  int64_t sum = 0;
  for (const int64_t count : counts) {
    sum += count;
    curve.push_back(static_cast<double>(sum) / all);
  }
  return curve;
}

double gini(std::vector<int64_t> counts) {
  std::sort(counts.begin(), counts.end());
  const auto n = static_cast<int64_t>(counts.size());
  int64_t weighted = 0, sum = 0;
  for (int64_t i = 1; i <= n; ++i) {
    const int64_t count = counts[static_cast<size_t>(i - 1)];
    weighted += (2 * i - n - 1) * count;
    sum += count;
  }
  return sum == 0 ? 0.0 : static_cast<double>(weighted) / (static_cast<double>(n) * static_cast<double>(sum));
}

double share_of_largest(std::vector<int64_t> counts, double share) {
  const auto classes = static_cast<double>(counts.size());
  const std::vector<double> curve = lorenz_curve(std::move(counts));
  const double place = (1 - share) * classes;
  // (1 - 0.2) * 5 counts as 4 whatever its last bit: a place very near a point is the point.
  const double nearest = std::round(place);
  const double at = std::abs(place - nearest) < 1e-9 * (1 + classes) ? nearest : place;
  const auto before = static_cast<size_t>(std::clamp(std::floor(at), 0.0, classes));
  if (before + 1 >= curve.size()) return 1 - curve.back();
  const double between = at - static_cast<double>(before);
  return 1 - ((1 - between) * curve[before] + between * curve[before + 1]);
}

}  // namespace settrain
