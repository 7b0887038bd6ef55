// The loops behind the smoothed top-K hinge. Raw pointers and no LibTorch, for files that must not see it.
#pragma once

#include <cstdint>

#include "losses/kernels/instruction_set.h"

struct CUstream_st;

namespace settrain {

/// The CUDA kernel takes no larger k: a thread holds polynomials of that degree.
inline constexpr int kMostSmoothedHingeK = 32;

/// A batch of the loss of smoothed_topk_hinge.h. Contiguous memory of one device.
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
