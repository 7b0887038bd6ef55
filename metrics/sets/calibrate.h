// Rules that answer with sets: calibrated on scores, and their sets.
//
// p is the softmax (or sigmoid) of an image's scores, in float64 whatever their dtype; o is the rank of a class by the
// scores from 1, ties to the lower class. behind_o is the sum of the probabilities of the classes behind rank o.
//
//   top:K            the K classes with the largest scores (Garcin 2023, 2.2.1: point-wise size)
//   average:K        p_y >= threshold: sets of K classes on average (Garcin 2023, eq. 2.31, Algorithm 1)
//   error:E          the fewest classes whose probabilities sum to 1 - E (2.2.1: point-wise error)
//   average-error:E  p_y >= threshold, the largest that at most a share E of the labels lies below (average error)
//   conformal        s(x, y) <= q, by a score s and a threshold q
//
// q is the m-th smallest score of the labels of the n images that calibrate, m = ceil((n + 1)(1 - alpha)), and infinite
// where m > n. u is one number an image, uniform in [0, 1) where the rule is randomised, else 0, and 1 of saps.
//
//   lac   1 - p_y                                               Sadinle, Lei and Wasserman 2019
//   aps   p_(1) + ... + p_(o) - u p_y                           Romano, Sesia and Candes 2020
//   raps  aps + lambda max(0, o - k)                            Angelopoulos, Bates, Jordan and Malik 2021
//         with tune=size or tune=strata, k and lambda are those of raps_tuning.cpp
//   saps  u p_(1) where o = 1, else p_(1) + (o - 2 + u) lambda  Huang, Xi, Zhang, Yao, Qiu and Wei 2024
//   pas   -p_y / pi_y, pi_y the class' share of training images Ding, Fermanian and Salmon 2025
//   wpas  -w_y p_y / pi_y; pi_y = 0: the class is in every set, of pas too
//   risk  1 - p_y, as lac; q is below                          Angelopoulos, Bates, Fisch, Lei and Schuster 2024
//   tree  P(D_j), the first D_j that holds y. D_0 is empty, and D_j covers D_{j-1} and the class of rank j
//         by at most M nodes of the taxonomy (src/core/taxonomy.h). The answer is the largest D_j with
//         a score of at most q, and all classes where q is infinite. Ours; covers of the first classes,
//         found anew for each number of them, are not nested and would lose coverage.
//
// risk takes all labels Y of an image, and its loss is the share of them that the set lacks, 1 - |Y and C| / |Y|. q is
// the smallest number with n/(n+1) R(q) + 1/(n+1) <= alpha, where R(q) is the mean loss of the n images (arXiv
// 2208.02814, eq. 4). For images with one label this is the q of lac: the loss is then 1 where s > q, so that q is the
// smallest number with at least (n + 1)(1 - alpha) scores s <= q, the m-th smallest one.
//
// All but pas and wpas are stored minus 1: lac as -p_y, aps as -(behind_o + u p_y). A confident network gives p_(1) = 1
// to the last digit of a double, and 1 minus that is 0; the sum of the other probabilities, 1e-30 say, has its digits.
// Scores and thresholds are therefore sums of two numbers (double_double.h). Conformal scores tie only where logits tie
// or a weight is 0: probabilities below exp(-600) are never 0, and a sum of such ones alone is as its largest
// (score_rows.h).
//
// Which images set a class' q, and after the colon the probability that is then at least 1 - alpha:
//
//   marginal           all: P(label in set); of risk E(share of the labels in the set)
//   classwise          the class' own: P(label in set | label = y)
//   superclass         those of its superclass: P(label in set | superclass of the label)
//   interpolated(TAU)  TAU min(q_y, 1) + (1 - TAU) q, of classwise and marginal, for lac (Ding et al. 2025): P(label in
//                      set), at least 1 - 2 alpha
//   rc3p               its own, with a limit to o (Shi, Ghosh, Belkhouja, Doppa and Yan 2024): none exactly
//   clustered          those of its cluster (Ding et al. 2023): P(label in set | cluster of the label)
//   fuzzy(SIGMA)       those of classes as rare (Ding, Fermanian and Salmon 2025): P(label in set)
//
// The guarantees hold for an image that is exchangeable with those that calibrated, and only where these chose nothing:
// neither the weights, nor an epoch, nor a parameter. Without ties among the scores, marginal, classwise and superclass
// coverage is m / (n + 1) exactly.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "metrics/sets/rules/calibrated_rule.h"
#include "metrics/split_scores.h"

namespace settrain {

/// The labels that a rule is calibrated on and judged by: for risk all of each image's, where images have several.
inline const at::Tensor& labels_for(const SetRule& rule, const SplitScores& split) {
  return rule.takes_label_sets() && split.label_sets.defined() ? split.label_sets : split.labels;
}

/// Calibrates the rule. `scores` [images, classes] float32 or float64 logits on any device, `labels` [images] int64 in
/// [0, classes), or for risk also [images, classes] bool with at least one label an image: exchangeable with the images
/// that the rule will judge, where a guarantee is to hold. top and error take no images. Throws ConfigError where the
/// rule does not suit the classes (K above their number, no superclasses, no training counts, probabilities of a
/// sigmoid where they must sum to 1), and what check_split() throws.
CalibratedRule calibrate(const SetRule& rule, const ClassFacts& facts, const at::Tensor& scores,
                         const at::Tensor& labels, uint64_t seed);

/// The sets of images: [images, classes] bool on the CPU. `scores` [images, classes] as above; `first_image` is the
/// number of the first one, from which its u follows.
at::Tensor sets_of(const CalibratedRule& rule, const at::Tensor& scores, int64_t first_image = 0);

/// [classes] the probabilities with which each class is in a set: p >= least where p <= 1/2, else 1 - p <= most_rest.
/// The smaller of p and 1 - p has all its digits.
struct ProbabilityBounds {
  std::vector<double> least;      // infinite: with no p <= 1/2
  std::vector<double> most_rest;  // below 0: with no p at all
};

/// For the rules that compare each class' probability alone: average, average-error, lac, pas and wpas. Leaves limits
/// to ranks out.
ProbabilityBounds probability_bounds(const CalibratedRule& rule);

/// Softmax or sigmoid of the scores, those that make the sets: [images, classes] float64 on the CPU. Throws what
/// check_scores() throws.
at::Tensor probabilities_of(const at::Tensor& scores, ProbabilityKind kind);

}  // namespace settrain
