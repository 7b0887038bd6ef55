// The exact smoothed top-K of a row, by a block: see exact_smoothed_topk() in smoothed_topk.h.
#pragma once

#include "losses/kernels/cuda/block_top.cuh"
#include "losses/kernels/cuda/polynomial.cuh"
#include "losses/kernels/smooth_kernels.h"

namespace settrain {

/// A class that matters, in scratch memory.
struct ExactTopkItem {
  double above, below;  // P(s_j + epsilon z_j > t) and its complement at the node at hand
  double gradient;      // so far
  int32_t item;         // the class
};

template <int kMost, int kThreads>
struct ExactTopkShared {
  BlockTop<kMost + 1, kThreads> top;
  Polynomial<kMost> exchanged[kThreads];
  double fewer;
  int listed[kThreads / kWarpSize];  // by each warp
};

/// A row's scores, relative to the one of the rank: exact where it matters, for an epsilon may be small beside them.
template <class T>
struct ExactTopkRow {
  const T* scores;
  int32_t classes;
  int degree;  // rank - 1
  double center, epsilon;

  /// How many standard deviations the class lies above t.
  __device__ double z(int32_t c, double t) const { return (finite_score(scores[c]) - center - t) / epsilon; }
};

/// The standard normal distribution function. The small end is as accurate as the large one.
__device__ inline double normal_cdf(double z) {
  return 0.5 * erfc(-0.70710678118654752 * z);
}

/// P(fewer than rank classes above t), equal in all threads. To be called by a whole block.
template <int kMost, int kThreads, class T>
__device__ double probability_of_fewer(const ExactTopkRow<T>& row, double t, ExactTopkShared<kMost, kThreads>& shared) {
  constexpr double kNever = -40;  // standard deviations: even the least double is larger than such a probability
  Polynomial<kMost> product = Polynomial<kMost>::one(), others = product;
  for (int32_t c = static_cast<int32_t>(threadIdx.x); c < row.classes; c += kThreads) {
    const double z = row.z(c, t);
    if (z > kNever) product.times(Linear{normal_cdf(-z), normal_cdf(z)}, row.degree);
  }
  multiply_with_others<kThreads>(product, others, row.degree, shared.exchanged);
  // Another thread's sum may be rounded otherwise.
  if (threadIdx.x == 0) shared.fewer = product.sum(row.degree);
  __syncthreads();
  const double fewer = shared.fewer;
  __syncthreads();
  return fewer;
}

/// A grid around 0, the score of the rank, that is wider than the window in which the probability rises from 0 to 1.
struct ExactTopkGrid {
  static constexpr int kPoints = 65;
  static constexpr double kWidth = 9.5;
  double epsilon;
  __device__ double at(int i) const {
    const int inside = i < 0 ? 0 : i < kPoints ? i : kPoints - 1;
    return epsilon * kWidth * (2.0 * inside / (kPoints - 1) - 1);
  }
};

/// How many points of the grid have a probability of fewer below `limit`. To be called by a whole block.
template <int kMost, int kThreads, class T>
__device__ int points_below(const ExactTopkRow<T>& row, double limit, ExactTopkShared<kMost, kThreads>& shared) {
  const ExactTopkGrid grid{row.epsilon};
  int first = 0, end = ExactTopkGrid::kPoints;
  while (first < end) {
    const int middle = (first + end) / 2;
    if (probability_of_fewer(row, grid.at(middle), shared) < limit) {
      first = middle + 1;
    } else {
      end = middle;
    }
  }
  return first;
}

/// Lists in their order the classes that can come above `low`. Returns how many. To be called by a whole block.
template <int kMost, int kThreads, class T>
__device__ int list_relevant(const ExactTopkRow<T>& row, double low, ExactTopkItem* items,
                             ExactTopkShared<kMost, kThreads>& shared) {
  constexpr double kTail = 9;  // a normal's density and tail are under 1e-17 beyond
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  int total = 0;
  for (int32_t begin = 0; begin < row.classes; begin += kThreads) {
    const int32_t c = begin + static_cast<int32_t>(threadIdx.x);
    const bool wanted = c < row.classes && row.z(c, low) > -kTail;
    const unsigned lanes = __ballot_sync(kWholeWarp, wanted);
    if (lane() == 0) shared.listed[warp] = __popc(lanes);
    __syncthreads();
    int place = total + __popc(lanes & ((1U << lane()) - 1));
    for (int other = 0; other < kThreads / kWarpSize; ++other) {
      if (other < warp) place += shared.listed[other];
      total += shared.listed[other];
    }
    if (wanted) items[place] = {0, 0, 0, c};
    __syncthreads();
  }
  return total;
}

/// `items`: [classes] scratch memory of the row. `gradient`: the row's, or null.
template <int kMost, int kThreads, class T>
__device__ void exact_topk_block(const ExactTopkBatch<T>& batch, T* values, T* gradient, ExactTopkItem* items,
                                 ExactTopkShared<kMost, kThreads>& shared) {
  const int64_t index = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x), rank = static_cast<int>(batch.rank), degree = rank - 1;
  const int32_t classes = static_cast<int32_t>(batch.classes);
  const T* const scores = batch.scores + index * batch.classes;
  const bool is_nan = has_nan(scores, classes);
  for (int32_t c = thread; gradient && c < classes; c += kThreads) gradient[c] = is_nan ? nan_of<T>() : 0;
  if (is_nan) {
    if (thread == 0) values[index] = nan_of<T>();
    return;
  }
  shared.top.find(scores, classes, -1, rank);
  const ExactTopkRow<T> row{scores, classes, degree, shared.top.at(degree).value, batch.epsilon};
  // Probabilities near 1 are sums of rounded numbers.
  constexpr double kNothing = 1e-15, kNearOne = 1 - 1e-13;
  const ExactTopkGrid grid{batch.epsilon};
  const double low = grid.at(points_below(row, kNothing, shared) - 1);
  const double high = grid.at(points_below(row, kNearOne, shared));
  const int listed = list_relevant(row, low, items, shared);

  // Every thread sees to its own items.
  const int count = thread < listed ? (listed - thread - 1) / kThreads + 1 : 0;
  const double half = (high - low) / 2, middle = (high + low) / 2;
  double integral = 0;  // of the probability of fewer
  for (int node = 0; node < batch.num_nodes; ++node) {
    const double t = middle + half * batch.nodes[node], weight = half * batch.weights[node];
    Polynomial<kMost> product = Polynomial<kMost>::one(), others = product;
    for (int i = thread; i < listed; i += kThreads) {
      const double z = row.z(items[i].item, t);
      items[i].above = normal_cdf(z);
      items[i].below = normal_cdf(-z);
      product.times(Linear{items[i].below, items[i].above}, degree);
    }
    multiply_with_others<kThreads>(product, others, degree, shared.exchanged);
    integral += weight * product.sum(degree);
    if (!gradient) continue;
    for_each_without(
        others, degree, count,
        [&](int i) {
          const ExactTopkItem& item = items[thread + i * kThreads];
          return Linear{item.below, item.above};
        },
        [&](int i, const Polynomial<kMost>& p) {
          ExactTopkItem& item = items[thread + i * kThreads];
          const double z = row.z(item.item, t), density = 0.3989422804014327 / batch.epsilon * exp(-z * z / 2);
          item.gradient += weight * density * p.at(degree);
        });
  }
  if (thread == 0) {
    const double value = row.center + (high - integral);
    values[index] = static_cast<T>(value > kInfiniteResult ? HUGE_VAL : value < -kInfiniteResult ? -HUGE_VAL : value);
  }
  for (int i = thread; gradient && i < listed; i += kThreads) {
    gradient[items[i].item] = static_cast<T>(items[i].gradient);
  }
}

}  // namespace settrain
