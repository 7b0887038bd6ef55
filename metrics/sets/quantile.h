// The quantile of conformal prediction.
#pragma once

#include <cstdint>
#include <vector>

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

}  // namespace settrain
