#include "metrics/sets/clustered.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "metrics/sets/k_means.h"
#include "metrics/sets/quantile.h"

namespace settrain {
namespace {

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

bool is_finite(const Embedding& embedding) {
  return std::all_of(embedding.begin(), embedding.end(), [](double value) { return std::isfinite(value); });
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
    if (!is_finite(point)) continue;  // of scores pas gives classes without training images, which every set holds
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
