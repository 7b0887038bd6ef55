// The loops behind the smoothed top-K hinge. Raw pointers and no LibTorch, for files that must not see it.
#pragma once

#include <cstdint>

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

/// Writes losses [batch] and, unless null, gradient [batch, classes], that of row i's loss. A row with a NaN is NaN.
/// Infinite scores count as 1e300. k <= kMostSmoothedHingeK.
/// Asynchronous, on `stream`. Throws Error where CUDA refuses. Only in builds with CUDA. `scratch`: memory of
/// smoothed_hinge_scratch() bytes.
template <class T>
void launch_smoothed_hinge(const SmoothedHinge<T>& hinge, T* losses, T* gradient, void* scratch, CUstream_st* stream);
template <class T>
int64_t smoothed_hinge_scratch(const SmoothedHinge<T>& hinge);

}  // namespace settrain
