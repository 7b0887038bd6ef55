// The loops behind exact_smoothed_topk(). Raw pointers and no LibTorch, for files that must not see it.
#pragma once

#include <cstdint>

#include "losses/kernels/instruction_set.h"

struct CUstream_st;

namespace settrain {

/// The CUDA kernel takes no larger rank: a thread holds polynomials of a degree one less.
inline constexpr int kMostExactTopkRank = 33;

/// A batch of E[(s + epsilon z)_[rank]], see exact_smoothed_topk.h. Contiguous memory of one device, but for the rule,
/// which lies on the host for the CPU and on the device for CUDA.
template <class T>  // float or double; computed in double
struct ExactTopkBatch {
  const T* scores;  // [batch, classes]
  int64_t batch, classes;
  int64_t rank;                   // 1 <= rank <= classes
  double epsilon;                 // > 0
  const double *nodes, *weights;  // [num_nodes], a Gauss-Legendre rule on [-1, 1]
  int64_t num_nodes;
};

/// Bytes of memory that exact_topk_rows() needs to work in, whatever the type of the scores.
SETTRAIN_IN_EVERY_SET(int64_t exact_topk_workspace(int64_t classes, int64_t rank))

/// Writes values [batch] and, unless null, gradient [batch, classes] of the rows [begin, end). A row with a NaN is NaN;
/// in the gradient infinite scores count as kInfiniteScore.
SETTRAIN_IN_EVERY_SET(template <class T> void exact_topk_rows(const ExactTopkBatch<T>& batch, int64_t begin,
                                                              int64_t end, void* workspace, T* values, T* gradient))

/// The same for the whole batch on CUDA; rank <= kMostExactTopkRank. Asynchronous, on `stream`. Throws Error where CUDA
/// refuses. Only in builds with CUDA. `scratch`: memory of exact_topk_scratch() bytes.
template <class T>
void launch_exact_topk(const ExactTopkBatch<T>& batch, T* values, T* gradient, void* scratch, CUstream_st* stream);
template <class T>
int64_t exact_topk_scratch(const ExactTopkBatch<T>& batch);

}  // namespace settrain
