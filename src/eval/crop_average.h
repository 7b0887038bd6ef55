// One answer to an image out of those to its crops.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace settrain {

struct CropAverage {
  enum class Kind { kSoftmax, kScores, kTopk };
  using enum Kind;

  Kind kind = kSoftmax;
  int64_t k = 1;             // of kTopk
  double score_scale = 1.0;  // Loss::score_scale(): multiplies scores before they become probabilities
};

/// `scores` [images * crops, classes] floating point, the crops of an image one after the other, become [images,
/// classes] float32.
///
/// kScores: the mean over the crops. kSoftmax, kTopk: s with score_scale * s = ln p, p the mean over the crops of
/// probabilities, so that what takes the softmax of the scaled scores finds p. kSoftmax: softmax(score_scale * s).
/// kTopk: the probability that a class is among K labels drawn together, whose sets have weights exp(sum of scaled
/// scores), over K: p_i = (1/K) d ln sigma_K(exp(s)) / ds_i, sigma_K the elementary symmetric polynomial (Berrada et
/// al. 2018, Proposition 7, eq. 63 to 66). Throws std::invalid_argument where kTopk is given K classes or fewer.
at::Tensor average_crops(const at::Tensor& scores, int64_t crops, const CropAverage& average);

}  // namespace settrain
