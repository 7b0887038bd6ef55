#include "losses/kernels/noise_kernels.h"
#include "src/core/cuda_check.h"
#include "src/core/normal.h"

namespace settrain {
namespace {

constexpr int kThreads = 256;
constexpr int64_t kMaxBlocks = 65536;  // beyond it, a thread writes several normals

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

}  // namespace

void launch_noise(const NoiseCounter& first, const int64_t* step, int64_t batch, int64_t draws, int64_t classes,
                  float* out, CUstream_st* stream) {
  const int64_t size = batch * draws * classes;
  if (size == 0) return;
  const int64_t blocks = (size + kThreads - 1) / kThreads;
  fill<<<static_cast<unsigned>(blocks < kMaxBlocks ? blocks : kMaxBlocks), kThreads, 0, stream>>>(first, step, size,
                                                                                                  draws, classes, out);
  cuda_check(cudaGetLastError(), "filling the noise of a loss");
}

}  // namespace settrain
