// How unequally images are spread over classes.
#pragma once

#include <cstdint>
#include <vector>

namespace settrain {

/// The Lorenz curve of `counts` [n classes, any order, none negative], as figure 3.2 of Garcin 2023: of the classes
/// sorted from the least to the most images, the share of all images that the first i have; [n + 1] in [0, 1], from 0
/// to 1. Without an image in any class, that of equal counts: i / n.
std::vector<double> lorenz_curve(std::vector<int64_t> counts);

/// The Gini coefficient: 1 minus twice the area under the Lorenz curve through its points, which is
/// sum_i (2i - n - 1) c_(i) / (n sum_i c_(i)) for counts c_(1) <= ... <= c_(n). 0 where all are equal, 1 - 1/n where
/// one class has every image.
double gini(std::vector<int64_t> counts);

/// The share of images in the largest `share` [0 to 1] of the classes: 1 minus the Lorenz curve at 1 - share, between
/// its points on a straight line.
double share_of_largest(std::vector<int64_t> counts, double share);

}  // namespace settrain
