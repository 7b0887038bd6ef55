// Products of many polynomials of degree 1, a block at a time, and the same product without each of them: from products
// alone, so that positive terms stay positive and nothing cancels.
#pragma once

#include <cstdint>

namespace settrain {

struct Linear {
  double constant, slope;
};

/// Coefficients up to a degree <= kMost, a parameter of its functions, which ignore the coefficients above it.
template <int kMost>
struct Polynomial {
  double c[kMost + 1];

  __device__ static Polynomial one() {
    Polynomial result{};
    result.c[0] = 1;
    return result;
  }
  // Loops have constant bounds, so that a small polynomial stays in registers.
  __device__ void times(const Linear& factor, int degree) {
    for (int i = kMost; i >= 1; --i) {
      if (i <= degree) c[i] = c[i] * factor.constant + c[i - 1] * factor.slope;
    }
    c[0] *= factor.constant;
  }
  __device__ void times(const Polynomial& factor, int degree) {
    for (int i = kMost; i >= 0; --i) {
      if (i > degree) continue;
      double sum = 0;
      for (int j = 0; j <= i; ++j) sum += c[j] * factor.c[i - j];
      c[i] = sum;
    }
  }
  __device__ double at(int degree) const {
    double found = 0;
    for (int i = 0; i <= kMost; ++i) found = i == degree ? c[i] : found;
    return found;
  }
  /// The sum of the coefficients up to that degree.
  __device__ double sum(int degree) const {
    double sum = 0;
    for (int i = 0; i <= kMost; ++i) sum += i <= degree ? c[i] : 0;
    return sum;
  }
};

/// Multiplies `product` by the other threads' products, and `others`, which is 1 before, by the same. In `exchanged`
/// [kThreads] threads swap theirs with partners 1, 2, 4, ... threads away. To be called by a whole block.
template <int kThreads, int kMost>
__device__ void multiply_with_others(Polynomial<kMost>& product, Polynomial<kMost>& others, int degree,
                                     Polynomial<kMost>* exchanged) {
  const unsigned thread = threadIdx.x;
  for (unsigned distance = 1; distance < kThreads; distance *= 2) {
    exchanged[thread] = product;
    __syncthreads();
    const Polynomial<kMost>& partner = exchanged[thread ^ distance];
    others.times(partner, degree);
    product.times(partner, degree);
    __syncthreads();
  }
}

/// use(i, others times all of factor(0), ..., factor(count - 1) but factor(i)) for every i. In groups of about
/// sqrt(count), which bounds both the work and the memory.
template <int kMost, class Factor, class Use>
__device__ void for_each_without(const Polynomial<kMost>& others, int degree, int count, const Factor& factor,
                                 const Use& use) {
  int size = 1;
  while (size * size < count) ++size;
  for (int begin = 0; begin < count; begin += size) {
    const int end = begin + size < count ? begin + size : count;
    Polynomial<kMost> outside = others;
    for (int i = 0; i < count; ++i) {
      if (i < begin || i >= end) outside.times(factor(i), degree);
    }
    for (int own = begin; own < end; ++own) {
      Polynomial<kMost> rest = outside;
      for (int i = begin; i < end; ++i) {
        if (i != own) rest.times(factor(i), degree);
      }
      use(own, rest);
    }
  }
}

}  // namespace settrain
