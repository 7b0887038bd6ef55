#include "losses/kernels/cuda/smoothed_hinge_block.cuh"
#include "src/core/cuda_check.h"

namespace settrain {
namespace {

template <int kMost, int kThreads, class T>
__global__ void __launch_bounds__(kThreads, 2)
    forward(SmoothedHinge<T> hinge, T* losses, T* gradient, double* scratch) {
  __shared__ SmoothedHingeShared<kMost, kThreads> shared;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * hinge.classes;
  smoothed_hinge_block(hinge, losses, gradient ? gradient + row : nullptr, scratch + row, shared);
}

template <int kMost, int kThreads, class T>
void launch(const SmoothedHinge<T>& hinge, T* losses, T* gradient, void* scratch, CUstream_st* stream) {
  forward<kMost, kThreads><<<static_cast<unsigned>(hinge.batch), kThreads, 0, stream>>>(hinge, losses, gradient,
                                                                                        static_cast<double*>(scratch));
  cuda_check(cudaGetLastError(), "computing a smoothed top-K hinge");
}

}  // namespace

template <class T>
void launch_smoothed_hinge(const SmoothedHinge<T>& hinge, T* losses, T* gradient, void* scratch, CUstream_st* stream) {
  if (hinge.k > kMostSmoothedHingeK) throw Error("launch_smoothed_hinge: k is too large");
  if (hinge.batch == 0) return;
  // A thread holds a few polynomials: small ones in registers.
  if (hinge.k <= 8) {
    launch<8, 256>(hinge, losses, gradient, scratch, stream);
  } else {
    launch<kMostSmoothedHingeK, 128>(hinge, losses, gradient, scratch, stream);
  }
}

template <class T>
int64_t smoothed_hinge_scratch(const SmoothedHinge<T>& hinge) {
  return hinge.batch * hinge.classes * static_cast<int64_t>(sizeof(double));
}

template void launch_smoothed_hinge(const SmoothedHinge<float>&, float*, float*, void*, CUstream_st*);
template void launch_smoothed_hinge(const SmoothedHinge<double>&, double*, double*, void*, CUstream_st*);
template int64_t smoothed_hinge_scratch(const SmoothedHinge<float>&);
template int64_t smoothed_hinge_scratch(const SmoothedHinge<double>&);

}  // namespace settrain
