// A warp: its lanes, and reductions over them.
#pragma once

namespace settrain {

constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xFFFFFFFF;

__device__ inline int lane() {
  return static_cast<int>(threadIdx.x) % kWarpSize;
}

/// The sum, and the least, of the values of all lanes. To be called by a whole warp.
__device__ inline unsigned sum_by_shuffles(unsigned value) {
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    value += __shfl_xor_sync(kWholeWarp, value, distance);
  }
  return value;
}

__device__ inline unsigned min_by_shuffles(unsigned value) {
  for (int distance = kWarpSize / 2; distance > 0; distance /= 2) {
    const unsigned other = __shfl_xor_sync(kWholeWarp, value, distance);
    value = other < value ? other : value;
  }
  return value;
}

// Devices before compute capability 8.0 have no instruction for these two, and CUDA declares no such functions for
// them. They keep CUDA's names, so that the emulation on the CPU still sees from which line of the source a warp calls
// them.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
__device__ inline unsigned __reduce_add_sync(unsigned /*mask*/, unsigned value) {
  return sum_by_shuffles(value);
}

__device__ inline unsigned __reduce_min_sync(unsigned /*mask*/, unsigned value) {
  return min_by_shuffles(value);
}
#endif

}  // namespace settrain
