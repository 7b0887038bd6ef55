// How Berrada, Zisserman, Kumar ("Smooth Loss Functions for Deep Top-k Classification", ICLR 2018) compute the smoothed
// top-K hinge, from the paper's text. For comparison alone: what trains is losses/smoothed_topk_hinge.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

namespace settrain {

/// The summation algorithm (Algorithm 3): the elementary symmetric polynomials of degrees 0 to `degree` of `e` [batch,
/// n], as [degree + 1, batch] in its dtype, adding an element at a time. No gradient.
at::Tensor by_summation(const at::Tensor& e, int64_t degree);

/// Divide and conquer (Algorithm 1) in logarithms (B.2.1): the logarithms of the same, of e = exp(x). [batch, n] to
/// [degree + 1, batch]. The polynomials 1/e_i + X are multiplied in pairs up to `degree`, and the product by all of e.
/// degree <= n. Its gradient is LibTorch's.
at::Tensor by_division(const at::Tensor& x, int64_t degree);

/// The logarithms for degrees `k` - 1 and `k` by by_division(), as [2, batch]. The gradient is that of Algorithm 2:
/// delta_j,i = sigma_(j-1) - e_i delta_(j-1),i, in logarithms. Where the two terms agree so closely that their
/// difference is lost, the approximation of order p = 0.2 k, rounded and at least 1, stands for it (Definition 1):
/// sum_q (-1)^q sigma_(j+q) / e_i^(q+1). The paper does not say how closely; here it is a relative difference below the
/// root of the dtype's precision.
at::Tensor with_custom_backward(const at::Tensor& x, int64_t k);

enum class SmoothedAlgorithm { kSummation, kAutograd, kCustomBackward };

/// [batch] the loss of smoothed_topk_hinge.cpp (eq. 10) in the dtype of `scores` [batch, classes], for `labels` [batch]
/// int64.
at::Tensor smoothed_hinge_by(SmoothedAlgorithm algorithm, const at::Tensor& scores, const at::Tensor& labels, int64_t k,
                             double tau, double alpha);

/// [batch, classes - 1] the other classes' scores over k tau: what the algorithms take.
at::Tensor scaled_others(const at::Tensor& scores, const at::Tensor& labels, int64_t k, double tau);

}  // namespace settrain
