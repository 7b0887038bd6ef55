#include "metrics/sets/k_means.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "metrics/sets/set_noise.h"

namespace settrain {
namespace {

double squared_distance(const Embedding& a, const Embedding& b) {
  double sum = 0;
  for (size_t d = 0; d < a.size(); ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

/// Centres among the points, each drawn in proportion to weight times squared distance from those before it.
std::vector<Embedding> drawn_centres(const std::vector<Embedding>& points, const std::vector<double>& weights,
                                     int64_t clusters, uint64_t seed, uint32_t restart) {
  std::vector<Embedding> centres;
  std::vector<double> chances = weights;
  for (int64_t k = 0; k < clusters; ++k) {
    double sum = 0;
    for (const double chance : chances) sum += chance;
    double left = set_noise(seed, SetNoise::kKMeans, k, restart) * sum;
    size_t drawn = 0;
    while (drawn + 1 < points.size() && left >= chances[drawn]) left -= chances[drawn++];
    centres.push_back(points[drawn]);
    for (size_t i = 0; i < points.size(); ++i) {
      const double chance = weights[i] * squared_distance(points[i], centres.back());
      chances[i] = k == 0 ? chance : std::min(chances[i], chance);
    }
  }
  return centres;
}

/// The nearest centre of every point, and the weighted sum of squared distances.
std::pair<std::vector<int64_t>, double> assign(const std::vector<Embedding>& points, const std::vector<double>& weights,
                                               const std::vector<Embedding>& centres) {
  std::vector<int64_t> nearest;
  double inertia = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    size_t best = 0;
    for (size_t k = 1; k < centres.size(); ++k) {
      if (squared_distance(points[i], centres[k]) < squared_distance(points[i], centres[best])) best = k;
    }
    nearest.push_back(static_cast<int64_t>(best));
    inertia += weights[i] * squared_distance(points[i], centres[best]);
  }
  return {nearest, inertia};
}

/// Moves every centre that has points to their weighted mean.
void move(std::vector<Embedding>& centres, const std::vector<Embedding>& points, const std::vector<double>& weights,
          const std::vector<int64_t>& nearest) {
  std::vector<Embedding> sums(centres.size(), Embedding{});
  std::vector<double> masses(centres.size());
  for (size_t i = 0; i < points.size(); ++i) {
    const auto k = static_cast<size_t>(nearest[i]);
    masses[k] += weights[i];
    for (size_t d = 0; d < sums[k].size(); ++d) sums[k][d] += weights[i] * points[i][d];
  }
  for (size_t k = 0; k < centres.size(); ++k) {
    if (masses[k] == 0) continue;
    for (size_t d = 0; d < sums[k].size(); ++d) centres[k][d] = sums[k][d] / masses[k];
  }
}

}  // namespace

std::vector<int64_t> k_means(const std::vector<Embedding>& points, const std::vector<double>& weights, int64_t clusters,
                             uint64_t seed) {
  constexpr uint32_t kRestarts = 10;
  constexpr int kSteps = 300;
  std::vector<int64_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (uint32_t restart = 0; restart < kRestarts; ++restart) {
    std::vector<Embedding> centres = drawn_centres(points, weights, clusters, seed, restart);
    auto [nearest, inertia] = assign(points, weights, centres);
    for (int step = 0; step < kSteps; ++step) {
      move(centres, points, weights, nearest);
      auto next = assign(points, weights, centres);
      inertia = next.second;
      if (std::exchange(nearest, std::move(next.first)) == nearest) break;
    }
    if (inertia < least) {
      least = inertia;
      best = std::move(nearest);
    }
  }
  return best;
}

}  // namespace settrain
