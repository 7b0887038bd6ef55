#include "losses/ops/polynomials.h"

#include <ATen/TensorOperators.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/logsumexp.h>
#include <ATen/ops/ones_like.h>
#include <ATen/ops/stack.h>
#include <ATen/ops/zeros_like.h>

#include <algorithm>
#include <bit>
#include <vector>

namespace settrain {
namespace {

// `p` [..., n, d + 1] coefficients, n a power of 2. Multiplies neighbours until one is left. combine(a, b) [..., terms]
// gives one coefficient of a product from the pairs that add up to it.
template <class Combine>
at::Tensor product(at::Tensor p, int64_t degree, const Combine& combine) {
  while (p.size(-2) > 1) {
    const at::Tensor a = p.slice(-2, 0, std::nullopt, 2), b = p.slice(-2, 1, std::nullopt, 2).flip(-1);
    const int64_t d = p.size(-1) - 1;
    std::vector<at::Tensor> coefficients;
    for (int64_t m = 0; m <= std::min(2 * d, degree); ++m) {
      const int64_t low = std::max<int64_t>(0, m - d), high = std::min(m, d);
      // a[low .. high] with b[m - low .. m - high], which lie reversed.
      coefficients.push_back(combine(a.slice(-1, low, high + 1), b.slice(-1, d - m + low, d - m + high + 1)));
    }
    p = at::stack(coefficients, -1);
  }
  return p.squeeze(-2).slice(-1, 0, degree + 1);
}

int64_t missing_to_power_of_two(int64_t n) {
  return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(n))) - n;
}

}  // namespace

at::Tensor log_elementary_symmetric(const at::Tensor& x, int64_t degree) {
  const at::Tensor padded = at::constant_pad_nd(x, {0, missing_to_power_of_two(x.size(-1))}, kLogOfNothing);
  return product(at::stack({at::zeros_like(padded), padded}, -1), degree,
                 [](const at::Tensor& a, const at::Tensor& b) { return at::logsumexp(a + b, {-1}); });
}

at::Tensor elementary_symmetric(const at::Tensor& e, int64_t degree) {
  return number_of_events(e, at::ones_like(e), degree);
}

at::Tensor number_of_events(const at::Tensor& p, const at::Tensor& complement, int64_t most) {
  const int64_t missing = missing_to_power_of_two(p.size(-1));
  const at::Tensor padded =
      at::stack({at::constant_pad_nd(complement, {0, missing}, 1.0), at::constant_pad_nd(p, {0, missing}, 0.0)}, -1);
  return product(padded, most, [](const at::Tensor& a, const at::Tensor& b) { return (a * b).sum(-1); });
}

}  // namespace settrain
