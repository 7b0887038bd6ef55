// Which class has a rank in one draw, whatever the rank: digit by digit of (perturbed score, class), most significant
// first, drawing anew for every digit.
#pragma once

#include "losses/kernels/cuda/noised_stream.cuh"

namespace settrain {

struct NoisedRadix {
  static constexpr int kDigits = 256;
  int histogram[kDigits];
  int digit, rank, members;
  uint64_t found;
};

/// To be called by a whole block of kNoisedThreads.
__device__ inline Candidate select_by_radix(const NoisedRow& row, int draw, int rank, NoisedRadix& radix) {
  static_assert(NoisedRadix::kDigits == kNoisedThreads, "a thread a digit");
  const int thread = static_cast<int>(threadIdx.x);
  // Unique, and the lower class comes first.
  const auto key_of = [&](int32_t c) {
    return static_cast<uint64_t>(row.perturbed_in(draw, c)) << 32 | static_cast<uint32_t>(~c);
  };
  uint64_t digits = 0, mask = 0;  // those known
  for (int shift = 56; shift >= 0; shift -= 8) {
    radix.histogram[thread] = 0;
    __syncthreads();
    for (int32_t c = thread; c < row.classes; c += kNoisedThreads) {
      const uint64_t key = key_of(c);
      if ((key & mask) == digits) atomicAdd(&radix.histogram[key >> shift & 0xFF], 1);
    }
    __syncthreads();
    int above = 0;
    for (int digit = thread + 1; digit < NoisedRadix::kDigits; ++digit) above += radix.histogram[digit];
    if (above < rank && rank <= above + radix.histogram[thread]) {
      radix.digit = thread;
      radix.rank = rank - above;
      radix.members = radix.histogram[thread];
    }
    __syncthreads();
    digits |= static_cast<uint64_t>(radix.digit) << shift;
    mask |= uint64_t{0xFF} << shift;
    rank = radix.rank;
    if (radix.members == 1) break;
  }
  for (int32_t c = thread; c < row.classes; c += kNoisedThreads) {
    const uint64_t key = key_of(c);
    if ((key & mask) == digits) radix.found = key;
  }
  __syncthreads();
  const uint64_t found = radix.found;
  __syncthreads();
  return {static_cast<uint32_t>(found >> 32), static_cast<int32_t>(~static_cast<uint32_t>(found))};
}

}  // namespace settrain
