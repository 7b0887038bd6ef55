// The words of a warp.
#pragma once

namespace settrain {

constexpr int kWarpSize = 32;
constexpr unsigned kWholeWarp = 0xFFFFFFFF;

__device__ inline int lane() {
  return static_cast<int>(threadIdx.x) % kWarpSize;
}

}  // namespace settrain
