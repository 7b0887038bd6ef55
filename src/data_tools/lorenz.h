// Measures of how unequally images are distributed over classes.
#pragma once

#include <cstdint>
#include <vector>

namespace settrain {

/// The Lorenz curve of `counts` [n classes, any order, none negative], as in figure 3.2 of Garcin 2023. Element i is
/// the share of all images in the i classes with the fewest images; [n + 1] in [0, 1], from 0 to 1. If no class has an
/// image, it is the curve of equal counts, i / n.
std::vector<double> lorenz_curve(std::vector<int64_t> counts);

/// The Gini coefficient: 1 minus twice the area under the Lorenz curve through its points, which is
/// sum_i (2i - n - 1) c_(i) / (n sum_i c_(i)) for counts c_(1) <= ... <= c_(n). 0 where all are equal, 1 - 1/n where
/// one class has every image.
double gini(std::vector<int64_t> counts);

/// The share of images in the largest `share` [0 to 1] of the classes: 1 minus the Lorenz curve at 1 - share,
/// interpolated linearly between its points.
double share_of_largest(std::vector<int64_t> counts, double share);

}  // namespace settrain
