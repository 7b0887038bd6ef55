#include "losses/kernels/cuda/noised_hinge_block.cuh"
#include "src/core/cuda_check.h"
#include "src/core/normal.h"

namespace settrain {
namespace {

constexpr int kFillThreads = 256;
constexpr int64_t kMostFillBlocks = 65536;  // beyond it, a thread writes several normals

__global__ void fill(NoiseCounter first, const int64_t* step, int64_t size, int64_t draws, int64_t classes,
                     float* out) {
  if (step) first.step = static_cast<uint32_t>(*step);
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < size; i += stride) {
    const int64_t row = i / classes;
    const NoiseCounter counter{first.key, first.position + static_cast<uint32_t>(row / draws), first.step};
    out[i] = normal(noise_word(counter, static_cast<uint32_t>(i % classes), static_cast<uint32_t>(row % draws),
                               static_cast<uint32_t>(draws)));
  }
}

__global__ void __launch_bounds__(kNoisedThreads) forward(NoisedHinge hinge, float* losses, int32_t* chosen) {
  __shared__ NoisedHingeShared shared;
  noised_hinge_block(hinge, losses, chosen, shared);
}

__global__ void __launch_bounds__(kNoisedThreads)
    backward(NoisedHinge hinge, const float* losses, const int32_t* chosen, const float* outer, float* gradient) {
  noised_hinge_gradient_block(hinge, losses, chosen, outer, gradient);
}

// For has_code_here(): it is compiled for the same compute capabilities as the other kernels.
__global__ void nothing() {}

}  // namespace

void launch_noise(const NoiseCounter& first, const int64_t* step, int64_t batch, int64_t draws, int64_t classes,
                  float* out, CUstream_st* stream) {
  const int64_t size = batch * draws * classes;
  if (size == 0) return;
  const int64_t blocks = (size + kFillThreads - 1) / kFillThreads;
  fill<<<static_cast<unsigned>(blocks < kMostFillBlocks ? blocks : kMostFillBlocks), kFillThreads, 0, stream>>>(
      first, step, size, draws, classes, out);
  cuda_check(cudaGetLastError(), "filling the noise of a loss");
}

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

bool has_code_here() {
  cudaFuncAttributes unused;
  const cudaError_t status = cudaFuncGetAttributes(&unused, nothing);
  switch (status) {
    case cudaErrorNoKernelImageForDevice:
    case cudaErrorInvalidDeviceFunction:
    case cudaErrorUnsupportedPtxVersion:
      static_cast<void>(cudaGetLastError());  // the next check would report it as its own
      return false;
    default:
      cuda_check(status, "looking for the code of the losses");
      return true;
  }
}

}  // namespace settrain
