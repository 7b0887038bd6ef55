// Rank-calibrated thresholds of classes (Shi et al. 2024).
#pragma once

#include <cstdint>
#include <vector>

#include "src/core/double_double.h"

namespace settrain {

struct RankCalibration {
  std::vector<DoubleDouble> thresholds;  // [classes]
  std::vector<int64_t> most_ranks;       // [classes] k_y, from 1
};

/// e_y(k): the share of class y's images whose label has a rank above k. k_y is the smallest k with e_y(k) < alpha, and
/// the threshold the quantile of the class' scores at alpha - e_y(k_y) (Algorithm 1 with their second option, eq. 7).
/// A class without images: no limit at all. `ranks` [images] of labels, from 1; `labels` in [0, classes).
RankCalibration calibrate_ranks(const std::vector<DoubleDouble>& scores, const std::vector<int64_t>& ranks,
                                const std::vector<int64_t>& labels, int64_t classes, double alpha);

}  // namespace settrain
