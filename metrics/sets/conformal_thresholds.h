// The thresholds of conformal rules, from the scores of the calibration images' labels.
#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "metrics/split_scores.h"
#include "src/core/double_double.h"

namespace settrain {

/// m = ceil((images + 1) (1 - alpha)), at least 1. What rounding errors add to a whole product does not count: 10 * 0.9
/// gives 9.
int64_t conformal_rank(int64_t images, double alpha);

/// The smallest number of images with a finite quantile: m <= images.
int64_t images_needed(double alpha);

/// The m-th smallest score, infinite where there are fewer. A further score, exchangeable with these, is at most as
/// large with a probability of at least 1 - alpha, and of exactly m / (scores + 1) where no two scores are the same.
DoubleDouble conformal_quantile(std::vector<DoubleDouble> scores, double alpha);

/// The quantile of each group: `group_of` [scores] is a group in [0, groups), or negative, for none.
std::vector<DoubleDouble> conformal_quantiles(const std::vector<DoubleDouble>& scores,
                                              const std::vector<int64_t>& group_of, int64_t groups, double alpha);

/// The threshold of risk (calibrate.h), infinite where no finite one has a risk of at most alpha. `scores` [images,
/// classes] float32 or float64 on the CPU, contiguous; `labels` [images] int64, or [images, classes] bool with at least
/// one label an image.
DoubleDouble risk_threshold(const CalibratedRule& rule, const at::Tensor& scores, const at::Tensor& labels);

/// The k and the lambda of raps from images that calibrate nothing else (Angelopoulos, Bates, Jordan and Malik 2021,
/// appendix E, and their code). k is the smallest rank that the labels have with a share of at least 1 - alpha, as a
/// conformal quantile. lambda is the one of a few with which the rule, calibrated on these images, makes the smallest
/// sets for them (kSize: of 0.001, 0.01, 0.1, 0.2 and 0.5), or the smallest size-stratified violation (kStrata: of
/// 0.00001, 0.0001, 0.0008, 0.001, 0.0015 and 0.002).
RapsPenalty tuned_penalty(const SetRule& rule, const ClassFacts& facts, const SplitScores& images, uint64_t seed);

/// Calibration images in two parts, drawn at random: `first` of the images, and the others. A function of the arguments
/// alone.
std::pair<LabelScores, LabelScores> parts_of(const LabelScores& all, int64_t first, uint64_t seed);

/// The numbers that a class is clustered by.
using Embedding = std::array<double, 5>;

/// Weighted k-means of a few points: [points] the cluster of each, in [0, clusters): the best of ten runs of Lloyd's
/// algorithm by the weighted sum of squared distances, each from centres drawn as in k-means++ (Arthur and
/// Vassilvitskii 2007). At least one point.
std::vector<int64_t> k_means(const std::vector<Embedding>& points, const std::vector<double>& weights, int64_t clusters,
                             uint64_t seed);

struct ClusteredThresholds {
  std::vector<DoubleDouble> thresholds;  // [classes]
  std::string note;                      // how many clusters and classes without one there are
};

/// Thresholds of clusters of classes (Ding, Angelopoulos, Bates, Jordan and Tibshirani 2023).
///
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

/// [classes] the thresholds from the images of classes that are as rare (Ding, Fermanian and Salmon 2025, "fuzzy
/// classwise").
///
/// A class lies at r_y = its training images divided by those of the most frequent class, plus noise uniform
/// in [-0.01, 0.01), so that no two classes lie at the same place. With the images of one part, of which n_y are of
/// class y, F_y is the distribution of their scores, each weighted by exp(-(r_y - r_z)^2 (n_y + 1) / (2 sigma)) for its
/// label z, a Gaussian of variance sigma / (n_y + 1), and of y's own weight, 1, at infinity. The other images, held
/// out, set the level: q is the conformal quantile of their F_y(s), and a class is in the set where F_y(s(x, y)) <= q.
/// The threshold is the largest such score.
///
/// Held out are 5,000 images, as in the authors' experiments, but at most a fourth; `rule.share` stands in for the
/// other images' share.
std::vector<DoubleDouble> fuzzy_thresholds(const SetRule& rule, const LabelScores& images,
                                           const std::vector<int64_t>& train_counts, uint64_t seed);

}  // namespace settrain
