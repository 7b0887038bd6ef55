// clustered_thresholds() and its k_means().
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "metrics/sets/conformal_scores.h"
#include "metrics/sets/conformal_thresholds.h"

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

constexpr Embedding kLevels{0.5, 0.6, 0.7, 0.8, 0.9};

Embedding embedding_of(std::vector<double> scores) {
  std::sort(scores.begin(), scores.end());
  Embedding embedding{};
  for (size_t d = 0; d < kLevels.size(); ++d) {
    const double place = kLevels[d] * static_cast<double>(scores.size() - 1);
    const auto below = static_cast<size_t>(place);
    const size_t above = std::min(below + 1, scores.size() - 1);
    embedding[d] = scores[below] + (place - static_cast<double>(below)) * (scores[above] - scores[below]);
  }
  return embedding;
}

struct Plan {
  int64_t clusters = 0;
  double share = 0;  // of the images, to cluster the classes
};

Plan plan_of(const SetRule& rule, const LabelScores& images, int64_t classes) {
  std::vector<int64_t> counts(static_cast<size_t>(classes));
  for (const int64_t label : images.labels) ++counts[static_cast<size_t>(label)];
  const int64_t least = std::max(*std::min_element(counts.begin(), counts.end()), images_needed(rule.level));
  const auto enough = std::count_if(counts.begin(), counts.end(), [&](int64_t count) { return count >= least; });
  const auto n = static_cast<double>(least), k = static_cast<double>(enough);
  const double clustering = std::floor(n * k / (75 + k));
  return {rule.clusters ? rule.clusters : static_cast<int64_t>(clustering / 2),
          rule.share > 0 ? rule.share : clustering / n};
}

/// [classes] the cluster of each, or -1.
std::vector<int64_t> cluster(const SetRule& rule, const LabelScores& images, int64_t classes, int64_t clusters,
                             uint64_t seed) {
  std::vector<std::vector<double>> of_class(static_cast<size_t>(classes));
  for (size_t i = 0; i < images.labels.size(); ++i) {
    of_class[static_cast<size_t>(images.labels[i])].push_back(images.scores[i].high);
  }
  std::vector<Embedding> points;
  std::vector<double> weights;
  std::vector<size_t> embedded;
  for (size_t c = 0; c < of_class.size(); ++c) {
    if (std::ssize(of_class[c]) < images_needed(rule.level)) continue;
    const Embedding point = embedding_of(of_class[c]);
    // pas gives infinite scores to classes without training images, which every set holds.
    if (!std::ranges::all_of(point, [](double value) { return std::isfinite(value); })) continue;
    points.push_back(point);
    weights.push_back(std::sqrt(static_cast<double>(of_class[c].size())));
    embedded.push_back(c);
  }
  std::vector<int64_t> cluster_of(of_class.size(), -1);
  if (clusters < 2 || std::ssize(points) <= clusters) return cluster_of;
  const std::vector<int64_t> found = k_means(points, weights, clusters, seed);
  for (size_t i = 0; i < embedded.size(); ++i) cluster_of[embedded[i]] = found[i];
  return cluster_of;
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

ClusteredThresholds clustered_thresholds(const SetRule& rule, const LabelScores& images, int64_t classes,
                                         uint64_t seed) {
  const Plan plan = plan_of(rule, images, classes);
  const auto first = static_cast<int64_t>(plan.share * static_cast<double>(images.labels.size()));
  const auto [clustering, calibration] = parts_of(images, first, seed);
  const std::vector<int64_t> cluster_of = cluster(rule, clustering, classes, plan.clusters, seed);
  std::vector<int64_t> image_clusters;
  for (const int64_t label : calibration.labels) image_clusters.push_back(cluster_of[static_cast<size_t>(label)]);
  const int64_t clusters = *std::max_element(cluster_of.begin(), cluster_of.end()) + 1;
  const std::vector<DoubleDouble> quantiles =
      conformal_quantiles(calibration.scores, image_clusters, clusters, rule.level);
  const DoubleDouble marginal = conformal_quantile(calibration.scores, rule.level);

  ClusteredThresholds result;
  for (const int64_t number : cluster_of) {
    result.thresholds.push_back(number < 0 ? marginal : quantiles[static_cast<size_t>(number)]);
  }
  result.note =
      clusters == 0
          ? fmt::format(
                "no clusters, and one threshold for all: the plan is {} clusters for {} classes; clusters= in "
                "the rule sets another number",
                plan.clusters, classes)
          : fmt::format(
                "{} of {} classes are in no cluster, for want of images, and share the threshold of all; the "
                "others form {} clusters",
                std::count(cluster_of.begin(), cluster_of.end(), -1), classes, clusters);
  return result;
}

}  // namespace settrain
