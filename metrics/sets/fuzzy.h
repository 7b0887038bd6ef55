// Thresholds from the images of classes that are as rare (Ding, Fermanian and Salmon 2025, "fuzzy classwise").
#pragma once

#include <cstdint>
#include <vector>

#include "metrics/sets/calibration_parts.h"
#include "metrics/sets/rules/set_rule.h"

namespace settrain {

/// [classes]. A class lies at r_y = its training images divided by those of the most frequent class, plus noise uniform
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
