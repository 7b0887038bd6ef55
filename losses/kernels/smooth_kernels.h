// The loops behind exact_smoothed_topk() and the smoothed top-K hinge. Raw pointers and no LibTorch, for files that
// must not see it. CUDA sees them too.
#pragma once

#include <cstdint>

#include "losses/kernels/instruction_set.h"

struct CUstream_st;

namespace settrain {

/// Stands for an infinite score, since differences of infinities are not numbers. Sums and differences of a few stay
/// finite (below 1.8e308), and no float32 score is as large.
inline constexpr double kInfiniteScore = 1e300;

/// A result beyond it comes from an infinite score, less rounding and the other scores.
inline constexpr double kInfiniteResult = 1e290;

/// The CUDA kernel takes no larger rank: a thread holds polynomials of a degree one less.
inline constexpr int kMostExactTopkRank = 33;

/// A batch of E[(s + epsilon z)_[rank]], see smoothed_topk.h. Contiguous memory of one device; the rule too lies on the
/// device for CUDA.
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

/// The CUDA kernel takes no larger k: a thread holds polynomials of that degree.
inline constexpr int kMostSmoothedHingeK = 32;

/// A batch of the loss of smoothed_topk_hinge.cpp. Contiguous memory of one device.
template <class T>  // float or double; computed in double
struct SmoothedHinge {
  const T* scores;        // [batch, classes]
  const int64_t* labels;  // [batch] in [0, classes)
  int64_t batch, classes;
  int64_t k;  // 1 <= k < classes
  double tau, alpha;
};

/// Bytes of memory that smoothed_hinge_rows() needs to work in, whatever the type of the scores.
SETTRAIN_IN_EVERY_SET(int64_t smoothed_hinge_workspace(int64_t classes, int64_t k))

/// Writes losses [batch] and, unless null, gradient [batch, classes], that of row i's loss, of the rows [begin, end). A
/// row with a NaN is NaN; in the gradient infinite scores count as kInfiniteScore. The number of sets of k classes must
/// be a double.
SETTRAIN_IN_EVERY_SET(template <class T> void smoothed_hinge_rows(const SmoothedHinge<T>& hinge, int64_t begin,
                                                                  int64_t end, void* workspace, T* losses, T* gradient))

/// The same for the whole batch on CUDA; k <= kMostSmoothedHingeK; a label out of range makes its row NaN.
/// Asynchronous, on `stream`. Throws Error where CUDA refuses. Only in builds with CUDA. `scratch`: memory of
/// smoothed_hinge_scratch() bytes.
template <class T>
void launch_smoothed_hinge(const SmoothedHinge<T>& hinge, T* losses, T* gradient, void* scratch, CUstream_st* stream);
template <class T>
int64_t smoothed_hinge_scratch(const SmoothedHinge<T>& hinge);

}  // namespace settrain
