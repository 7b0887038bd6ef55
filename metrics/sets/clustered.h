// Thresholds of clusters of classes (Ding, Angelopoulos, Bates, Jordan and Tibshirani 2023).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/sets/calibration_parts.h"
#include "metrics/sets/rules/set_rule.h"

namespace settrain {

struct ClusteredThresholds {
  std::vector<DoubleDouble> thresholds;  // [classes]
  std::string note;                      // how many clusters and classes without one there are
};

/// One part of the images clusters the classes: those with at least n_alpha of its images, the fewest with a finite
/// quantile, are embedded by the .5, .6, .7, .8 and .9 quantiles of their scores (linear between neighbours), and
/// k-means, weighted by sqrt(n_y), joins them. The other part gives each cluster the quantile of its images, and the
/// classes without a cluster that of all images.
///
/// By the paper's rule: n = max(images of the rarest class, n_alpha), K the classes with at least n images, m the whole
/// part of n K / (75 + K); then m / 2 clusters, rounded down, and a share m / n of the images for the first part. The
/// rule's own `clusters` and `share` stand in for these. Where there are not more classes than clusters, or fewer than
/// two clusters, no class has one.
ClusteredThresholds clustered_thresholds(const SetRule& rule, const LabelScores& images, int64_t classes,
                                         uint64_t seed);

}  // namespace settrain
