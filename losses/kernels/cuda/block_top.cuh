// A row's scores, seen by a block: whether one is NaN, and the few largest in descending order.
#pragma once

#include <cmath>
#include <cstdint>

#include "losses/kernels/cuda/warp.cuh"
#include "losses/kernels/smooth_kernels.h"

namespace settrain {

struct RankedScore {
  double value;
  int32_t item;  // a class

  /// Larger values come first, then lower classes.
  __device__ bool comes_before(const RankedScore& other) const {
    return value > other.value || (value == other.value && item < other.item);
  }
};

/// A score in float64, an infinite one as kInfiniteScore. NaN stays NaN.
template <class T>
__device__ double finite_score(T score) {
  const auto value = static_cast<double>(score);
  return value > kInfiniteScore ? kInfiniteScore : value < -kInfiniteScore ? -kInfiniteScore : value;
}

template <class T>
__device__ T nan_of() {
  return static_cast<T>(HUGE_VAL - HUGE_VAL);
}

/// Whether any of scores [classes] is NaN. To be called by a whole block.
template <class T>
__device__ bool has_nan(const T* scores, int32_t classes) {
  bool found = false;
  for (int32_t c = static_cast<int32_t>(threadIdx.x); c < classes; c += static_cast<int32_t>(blockDim.x)) {
    found |= scores[c] != scores[c];
  }
  return __syncthreads_count(found) != 0;
}

template <int kMost, int kThreads>
struct BlockTop {
  static constexpr int kWarps = kThreads / kWarpSize;
  double value[kMost];
  int32_t item[kMost];
  // Each warp's best. Two of each, so that a warp can write the next round's while another reads.
  double warp_value[2][kWarps];
  int32_t warp_item[2][kWarps];

  __device__ RankedScore at(int rank) const { return {value[rank], item[rank]}; }

  /// Finds the `count` largest of scores [classes] but that of `left_out` (-1: none), of which there are as many; no
  /// NaN. To be called by a whole block.
  template <class T>
  __device__ void find(const T* scores, int32_t classes, int32_t left_out, int count) {
    // The thread's next: it looks for one again only when the last was taken.
    RankedScore own = next_of_thread(scores, classes, left_out, {HUGE_VAL, -1});
    for (int rank = 0; rank < count; ++rank) {
      const RankedScore best = best_of_block(own, rank % 2);
      if (threadIdx.x == 0) {
        value[rank] = best.value;
        item[rank] = best.item;
      }
      if (own.item == best.item) own = next_of_thread(scores, classes, left_out, best);
    }
    __syncthreads();
  }

 private:
  template <class T>
  __device__ static RankedScore next_of_thread(const T* scores, int32_t classes, int32_t left_out,
                                               const RankedScore& after) {
    RankedScore best{-HUGE_VAL, INT32_MAX};
    for (int32_t c = static_cast<int32_t>(threadIdx.x); c < classes; c += kThreads) {
      const RankedScore score{finite_score(scores[c]), c};
      if (c != left_out && after.comes_before(score) && score.comes_before(best)) best = score;
    }
    return best;
  }

  __device__ RankedScore best_of_block(RankedScore best, int buffer) {
    for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
      const RankedScore other{__shfl_xor_sync(kWholeWarp, best.value, distance),
                              __shfl_xor_sync(kWholeWarp, best.item, distance)};
      if (other.comes_before(best)) best = other;
    }
    if (lane() == 0) {
      warp_value[buffer][threadIdx.x / kWarpSize] = best.value;
      warp_item[buffer][threadIdx.x / kWarpSize] = best.item;
    }
    __syncthreads();
    for (int warp = 0; warp < kWarps; ++warp) {
      const RankedScore other{warp_value[buffer][warp], warp_item[buffer][warp]};
      if (other.comes_before(best)) best = other;
    }
    return best;
  }
};

}  // namespace settrain
