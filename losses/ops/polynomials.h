// Products of many polynomials of degree 1, a row at a time. The top-K losses are made of these.
#pragma once

#include <ATen/core/Tensor.h>

namespace settrain {

/// Stands for the logarithm of 0 in log_elementary_symmetric(): small enough to vanish in every sum, and unlike
/// -infinity without a gradient that is not a number.
inline constexpr double kLogOfNothing = -1e300;

/// The logarithms of the elementary symmetric polynomials of degrees 0 to `degree` of exp(x): [..., classes] float64 to
/// [..., degree + 1], or fewer where there are fewer classes. The polynomials prod_j (1 + exp(x_j) X), cut off above
/// `degree`, are multiplied in pairs, in logarithms: every term is positive, so nothing cancels, and the gradient, the
/// probability of a class among the K drawn, is as accurate. O(classes * degree) operations.
at::Tensor log_elementary_symmetric(const at::Tensor& x, int64_t degree);

/// The elementary symmetric polynomials of degrees 0 to `degree` of `e` themselves: [..., classes] float64 to [...,
/// degree + 1], or fewer where there are fewer classes. Sums of products, with cancellation only where e has negative
/// numbers; large numbers overflow to infinity.
at::Tensor elementary_symmetric(const at::Tensor& e, int64_t degree);

/// The probabilities that 0, 1, ... `most` of independent events happen, whose probabilities are `p` and 1 - p =
/// `complement`: [..., classes] float64 to [..., most + 1], or fewer where there are fewer events. (The Poisson
/// binomial distribution.)
at::Tensor number_of_events(const at::Tensor& p, const at::Tensor& complement, int64_t most);

}  // namespace settrain
