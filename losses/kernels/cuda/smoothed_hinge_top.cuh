// Elementary symmetric polynomials of all classes but the label, put together from those of the K highest classes and
// the product over all the others ("the rest").
//
// All is scaled so that nothing overflows however small tau is. With x_1 >= ... >= x_K the K highest of the scaled
// scores s/(K tau), the polynomial sigma_i of degree i is in units of exp(x_1 + ... + x_i) and then called a_i: at
// least 1, at most the number of sets. The rest has coefficients of exp(x_j - x_K). Every exponent is <= 0.
#pragma once

#include "losses/kernels/cuda/polynomial.cuh"

namespace settrain {

template <int kMost>
struct SmoothedHingeTop {
  // Of the i-th highest class, counted from 0.
  double step[kMost];     // exp(x of the next one - x)
  double to_last[kMost];  // exp(x of the last one - x)
  // Coefficients, degree by degree.
  double rest[kMost + 1], highest[kMost + 1];
  // For the degrees m = K and K - 1: a_m is the sum over r of weight[K - m][r] times coefficient m - r of the highest.
  double weight[2][kMost + 1];
  // For m = K - 1 and K - 2: a_m is the sum over r of share[K - 1 - m][r] times coefficient r of the rest.
  double share[2][kMost + 1];

  /// The polynomial of the highest classes; with one of them `forced`, of the sets that hold it; -1: of all sets.
  __device__ Polynomial<kMost> of_highest(int k, int forced) const {
    Polynomial<kMost> p = Polynomial<kMost>::one();
    for (int added = 0; added < kMost; ++added) {
      if (added >= k) continue;
      double factor = 1;  // exp(x of the added one - x_i); no degree above its own is there yet
      for (int i = kMost; i >= 1; --i) {
        if (i > added + 1) continue;
        if (i <= added) factor *= step[i - 1];
        p.c[i] = (added == forced ? 0 : p.c[i]) + p.c[i - 1] * factor;
      }
      if (added == forced) p.c[0] = 0;
    }
    return p;
  }

  /// Writes coefficient(r) times the unit of r classes of the rest beside `degree` - r of the highest, for r <= degree.
  template <class Coefficient>
  __device__ void weigh(int degree, double* out, const Coefficient& coefficient) const {
    double unit = 1;
    for (int r = 0; r <= degree; ++r) {
      out[r] = coefficient(r) * unit;
      if (r < degree) unit *= to_last[degree - r - 1];
    }
  }

  /// a_{k - below} for a polynomial of the highest classes, with the whole rest; below: 0 or 1.
  __device__ double with_rest(const Polynomial<kMost>& p, int k, int below) const {
    double sum = 0;
    for (int i = 0; i <= kMost; ++i) {
      if (i <= k - below) sum += p.c[i] * weight[below][k - below - i];
    }
    return sum;
  }

  /// a_{k - 1 - below} for a polynomial of the rest, with all the highest classes.
  __device__ double with_highest(const Polynomial<kMost>& p, int k, int below) const {
    double sum = 0;
    for (int r = 0; r <= kMost; ++r) {
      if (r <= k - 1 - below) sum += p.c[r] * share[below][r];
    }
    return sum;
  }
};

}  // namespace settrain
