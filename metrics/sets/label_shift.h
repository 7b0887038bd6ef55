// Scores for a place whose classes have other shares than those that the model was trained for, and estimates of the
// shares from unlabelled images. Both hold by label shift: P(y) differs, and P(x | y) does not.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace settrain {

/// [classes] what is added to the scores of a model whose softmax has the classes in the shares `of_model`, so that it
/// has them in the shares `wanted`: log(wanted_y / of_model_y), and -infinity for a class that does not occur. Both
/// [classes], those of the model above 0, of any sum.
std::vector<double> score_offsets(const std::vector<double>& wanted, const std::vector<double>& of_model);

/// [images, classes] float64 on the CPU: the scores with the offsets. A class that does not occur comes last in every
/// image, with a probability too small to count.
at::Tensor with_offsets(const at::Tensor& scores, const std::vector<double>& offsets);

/// [classes] the shares of the classes among the images of `probabilities`, [images, classes] float64: the most likely
/// ones, found by expectation maximisation (Saerens, Latinne and Decaestecker, "Adjusting the outputs of a classifier
/// to new a priori probabilities", 2002, eq. 2.9). `of_model` [classes]: the shares that these probabilities assume.
/// Needs probabilities that are right for these.
std::vector<double> shares_by_likelihood(const at::Tensor& probabilities, const std::vector<double>& of_model);

/// [classes] the same from the answers alone, the classes with the largest score: q = p w with C w = m, where m_i is
/// the share of the unlabelled images with the answer i, and C_ij the share of the labelled ones with the answer i and
/// the label j (Lipton, Wang and Smola, "Detecting and correcting for label shift with black box predictors", 2018).
/// Where C has no inverse, w is the shortest least-squares solution; parts of q below 0 become 0. Empty where nothing
/// is left. `scores` and `unlabelled` [images, classes], `labels` [images].
std::vector<double> shares_by_confusion(const at::Tensor& scores, const at::Tensor& labels,
                                        const at::Tensor& unlabelled);

}  // namespace settrain
