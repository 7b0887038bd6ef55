#include "losses/kernels/cuda/noised_hinge_block.cuh"
#include "src/core/cuda_check.h"

namespace settrain {
namespace {

__global__ void __launch_bounds__(kNoisedThreads) forward(NoisedHinge hinge, float* losses, int32_t* chosen) {
  __shared__ NoisedHingeShared shared;
  noised_hinge_block(hinge, losses, chosen, shared);
}

__global__ void __launch_bounds__(kNoisedThreads)
    backward(NoisedHinge hinge, const float* losses, const int32_t* chosen, const float* outer, float* gradient) {
  noised_hinge_gradient_block(hinge, losses, chosen, outer, gradient);
}

}  // namespace

void launch_noised_hinge(const NoisedHinge& hinge, float* losses, int32_t* chosen, CUstream_st* stream) {
  if (hinge.batch == 0) return;
  forward<<<static_cast<unsigned>(hinge.batch), kNoisedThreads, 0, stream>>>(hinge, losses, chosen);
  cuda_check(cudaGetLastError(), "computing a noised top-K loss");
}

void launch_noised_hinge_gradient(const NoisedHinge& hinge, const float* losses, const int32_t* chosen,
                                  const float* outer, float* gradient, CUstream_st* stream) {
  if (hinge.batch == 0) return;
  backward<<<static_cast<unsigned>(hinge.batch), kNoisedThreads, 0, stream>>>(hinge, losses, chosen, outer, gradient);
  cuda_check(cudaGetLastError(), "computing the gradient of a noised top-K loss");
}

}  // namespace settrain
