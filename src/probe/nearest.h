// Classifiers of feature vectors by distance: nearest neighbours and nearest class means.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>

namespace settrain {

/// Feature vectors of labelled images.
struct LabelledFeatures {
  at::Tensor features;  // [images, width] float32, contiguous, finite, on the CPU
  at::Tensor labels;    // [images] int64, at least 0, on the CPU
};

/// kCosine: 1 - the cosine of the angle; it is 1 where a vector is zero.
enum class Distance { kEuclidean, kCosine };

/// The scores [test images, classes] float32 that single classifiers give. A class that a classifier does not name,
/// such as one without a training image, has the score -infinity.
struct NeighbourScores {
  at::Tensor nearest;  // 0 for the class of the nearest training image
  at::Tensor votes;    // the number of images of the class among the `neighbours` nearest
};

/// Compares every test image with every training image, through blocks of test images. Products are float32; the
/// distances of all images that rounding could put among the nearest are then computed in float64, so the neighbours
/// are exact. Of two images at the same distance the one with the lower index is nearer.
///
/// `test` [images, width] as LabelledFeatures::features; `neighbours` from 1 to the number of training images.
/// `after_block(done)` is called with the number of test images done, and may throw.
NeighbourScores nearest_neighbours(const LabelledFeatures& train, const at::Tensor& test, int64_t classes,
                                   int64_t neighbours, Distance distance,
                                   const std::function<void(int64_t)>& after_block);

/// [test images, classes] float64: the nearer the mean of the class' training images, the larger. Minus the distance
/// for cosine; minus the squared distance plus a number that is the same for all classes for Euclidean.
/// -infinity for a class without a training image.
at::Tensor class_mean_scores(const LabelledFeatures& train, const at::Tensor& test, int64_t classes, Distance distance);

}  // namespace settrain
