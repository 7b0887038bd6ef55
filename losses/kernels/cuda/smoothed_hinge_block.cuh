// The smoothed top-K hinge of a row, by a block.
#pragma once

#include "losses/kernels/cuda/block_top.cuh"
#include "losses/kernels/cuda/polynomial.cuh"
#include "losses/kernels/smooth_kernels.h"

namespace settrain {

/// Elementary symmetric polynomials of all classes but the label, put together from those of the K highest classes and
/// the product over all the others ("the rest").
///
/// All is scaled so that nothing overflows however small tau is. With x_1 >= ... >= x_K the K highest of the scaled
/// scores s/(K tau), the polynomial sigma_i of degree i is in units of exp(x_1 + ... + x_i) and then called a_i: at
/// least 1, at most the number of sets. The rest has coefficients of exp(x_j - x_K). Every exponent is <= 0.
template <int kMost>
struct SmoothedHingeTop {
  // For the i-th highest class, counted from 0:
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

template <int kMost, int kThreads>
struct SmoothedHingeShared {
  BlockTop<kMost, kThreads> top;
  SmoothedHingeTop<kMost> sums;
  Polynomial<kMost> exchanged[kThreads];
  double total[2];  // a_K, a_{K-1}
  double slope;     // of the loss in z, divided by tau
};

/// Fills shared.sums and shared.total, given shared.top and `rest`, the product over the other classes. Returns, in
/// thread i < k, the parts of a_K and a_{K-1} from sets with the i-th highest class. To be called by a whole block.
template <int kMost, int kThreads>
__device__ Linear combine(const Polynomial<kMost>& rest, int k, double scale,
                          SmoothedHingeShared<kMost, kThreads>& shared) {
  SmoothedHingeTop<kMost>& sums = shared.sums;
  const double* const value = shared.top.value;
  const int thread = static_cast<int>(threadIdx.x);
  if (thread < k) {
    sums.step[thread] = thread + 1 < k ? exp((value[thread + 1] - value[thread]) * scale) : 0;
    sums.to_last[thread] = exp((value[k - 1] - value[thread]) * scale);
  }
  if (thread == 0) {
    for (int i = 0; i <= kMost; ++i) sums.rest[i] = i <= k ? rest.c[i] : 0;
  }
  __syncthreads();
  if (thread < 2) sums.weigh(k - thread, sums.weight[thread], [&](int r) { return sums.rest[r]; });
  __syncthreads();
  Linear own{0, 0};
  if (thread <= k) {  // thread k: all sets
    const Polynomial<kMost> p = sums.of_highest(k, thread < k ? thread : -1);
    own = {sums.with_rest(p, k, 0), sums.with_rest(p, k, 1)};
    if (thread == k) {
      shared.total[0] = own.constant;
      shared.total[1] = own.slope;
      for (int i = 0; i <= kMost; ++i) sums.highest[i] = i <= k ? p.c[i] : 0;
    }
  }
  __syncthreads();
  if (thread < 2) {
    const int degree = k - 1 - thread;
    sums.weigh(degree, sums.share[thread], [&](int r) { return sums.highest[degree - r]; });
  }
  __syncthreads();
  return own;
}

/// `scratch`: [classes] of the row. `gradient`: the row's, or null.
template <int kMost, int kThreads, class T>
__device__ void smoothed_hinge_block(const SmoothedHinge<T>& hinge, T* losses, T* gradient, double* scratch,
                                     SmoothedHingeShared<kMost, kThreads>& shared) {
  const int64_t index = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), k = static_cast<int>(hinge.k);
  const int32_t classes = static_cast<int32_t>(hinge.classes), label = static_cast<int32_t>(hinge.labels[index]);
  const bool is_class = hinge.labels[index] >= 0 && hinge.labels[index] < hinge.classes;
  const T* const scores = hinge.scores + index * hinge.classes;
  if (has_nan(scores, classes) || !is_class) {
    if (thread == 0) losses[index] = nan_of<T>();
    for (int32_t c = thread; gradient && c < classes; c += kThreads) gradient[c] = nan_of<T>();
    return;
  }
  shared.top.find(scores, classes, label, k);
  const double scale = 1 / (static_cast<double>(k) * hinge.tau);
  const RankedScore last = shared.top.at(k - 1);

  // Every thread sees to its own classes of the rest; the label and the highest have the weight 0.
  Polynomial<kMost> product = Polynomial<kMost>::one(), others = product;
  for (int32_t c = thread; c < classes; c += kThreads) {
    const RankedScore score{finite_score(scores[c]), c};
    scratch[c] = c != label && last.comes_before(score) ? exp((score.value - last.value) * scale) : 0;
    product.times(Linear{1, scratch[c]}, k);
  }
  multiply_with_others<kThreads>(product, others, k, shared.exchanged);
  const Linear own = combine(product, k, scale, shared);

  const double total[2] = {shared.total[0], shared.total[1]};
  if (thread == 0) {
    const double z =
        log(total[0]) - log(total[1]) + (last.value - finite_score(scores[label])) * scale + hinge.alpha / hinge.tau;
    const double small = exp(z < 0 ? z : -z);
    const double loss = hinge.tau * ((z < 0 ? 0 : z) + log1p(small));
    losses[index] = static_cast<T>(loss < kInfiniteResult ? loss : HUGE_VAL);
    shared.slope = (z < 0 ? small : 1) / (1 + small);
  }
  if (!gradient) return;
  __syncthreads();
  const double slope = shared.slope / static_cast<double>(k);
  const int32_t count = thread < classes ? (classes - thread - 1) / kThreads + 1 : 0;
  for_each_without(
      others, k - 1, count,
      [&](int i) {
        return Linear{1, scratch[thread + i * kThreads]};
      },
      [&](int i, const Polynomial<kMost>& p) {
        const int32_t c = thread + i * kThreads;
        const double in_one = scratch[c] * shared.sums.with_highest(p, k, 0) / total[0];
        const double in_other =
            k == 1 ? 0 : scratch[c] * shared.sums.to_last[k - 2] * shared.sums.with_highest(p, k, 1) / total[1];
        gradient[c] = static_cast<T>(slope * (in_one - in_other));
      });
  __syncthreads();  // the label and the highest got a 0
  if (thread < k)
    gradient[shared.top.item[thread]] = static_cast<T>(slope * (own.constant / total[0] - own.slope / total[1]));
  if (thread == k) gradient[label] = static_cast<T>(-slope);
}

}  // namespace settrain
