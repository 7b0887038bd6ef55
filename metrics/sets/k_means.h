// Weighted k-means of a few points.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

namespace settrain {

/// What a class is clustered by.
using Embedding = std::array<double, 5>;

/// [points] the cluster of each, in [0, clusters): the best of ten runs of Lloyd's algorithm by the weighted sum of
/// squared distances, each from centres drawn as in k-means++ (Arthur and Vassilvitskii 2007). At least one point.
std::vector<int64_t> k_means(const std::vector<Embedding>& points, const std::vector<double>& weights, int64_t clusters,
                             uint64_t seed);

}  // namespace settrain
