#include "losses/kernels/cuda/exact_topk_block.cuh"
#include "src/core/cuda_check.h"

namespace settrain {
namespace {

constexpr int kThreads = 128;

template <int kMost, class T>
__global__ void __launch_bounds__(kThreads, 2)
    forward(ExactTopkBatch<T> batch, T* values, T* gradient, ExactTopkItem* items) {
  __shared__ ExactTopkShared<kMost, kThreads> shared;
  const int64_t row = static_cast<int64_t>(blockIdx.x) * batch.classes;
  exact_topk_block(batch, values, gradient ? gradient + row : nullptr, items + row, shared);
}

template <int kMost, class T>
void launch(const ExactTopkBatch<T>& batch, T* values, T* gradient, void* scratch, CUstream_st* stream) {
  forward<kMost><<<static_cast<unsigned>(batch.batch), kThreads, 0, stream>>>(batch, values, gradient,
                                                                              static_cast<ExactTopkItem*>(scratch));
  cuda_check(cudaGetLastError(), "computing the exact smoothed top-K");
}

}  // namespace

template <class T>
void launch_exact_topk(const ExactTopkBatch<T>& batch, T* values, T* gradient, void* scratch, CUstream_st* stream) {
  if (batch.rank > kMostExactTopkRank) throw Error("launch_exact_topk: the rank is too large");
  if (batch.batch == 0) return;
  // A thread holds a few polynomials: small ones in registers.
  if (batch.rank <= 9) {
    launch<8>(batch, values, gradient, scratch, stream);
  } else {
    launch<kMostExactTopkRank - 1>(batch, values, gradient, scratch, stream);
  }
}

template <class T>
int64_t exact_topk_scratch(const ExactTopkBatch<T>& batch) {
  return batch.batch * batch.classes * static_cast<int64_t>(sizeof(ExactTopkItem));
}

template void launch_exact_topk(const ExactTopkBatch<float>&, float*, float*, void*, CUstream_st*);
template void launch_exact_topk(const ExactTopkBatch<double>&, double*, double*, void*, CUstream_st*);
template int64_t exact_topk_scratch(const ExactTopkBatch<float>&);
template int64_t exact_topk_scratch(const ExactTopkBatch<double>&);

}  // namespace settrain
