#include "tests/support/cuda_emulation.h"

#include "losses/kernels/cuda/warp.cuh"
#include "tests/support/catch2.h"

namespace settrain::cuda_emulation {
namespace {

struct Memory {
  int values[64];
};

TEST_CASE("CUDA emulation: barriers and warp operations") {
  for (const Settings& settings : kSettings) {
    std::vector<int> out(3 * 64);
    launch<Memory>(3, 64, settings, [&](Memory& shared) {
      const int thread = static_cast<int>(threadIdx.x);
      CHECK(shared.values[0] == (settings.backwards ? 0 : -1));
      __syncthreads();
      shared.values[thread] = thread;
      const int odd = __syncthreads_count(thread % 2);
      const unsigned lanes = __ballot_sync(0xFFFFFFFF, thread < 40);
      const double neighbour = __shfl_xor_sync(0xFFFFFFFF, thread / 2.0, 1);
      const bool right =
          odd == 32 && shared.values[63 - thread] == 63 - thread && lanes == (thread < 32 ? 0xFFFFFFFF : 0xFF) &&
          neighbour == (thread ^ 1) / 2.0 && __shfl_sync(0xFFFFFFFF, thread, 5) == thread / 32 * 32 + 5 &&
          __reduce_min_sync(0xFFFFFFFF, threadIdx.x) == threadIdx.x / 32 * 32 && __reduce_add_sync(0xFFFFFFFF, 2) == 64;
      out[blockIdx.x * 64 + threadIdx.x] = right;
    });
    CHECK(std::count(out.begin(), out.end(), 1) == 3 * 64);
  }
}

TEST_CASE("sum and least of a warp by shuffles are those of the instructions") {
  for (const Settings& settings : kSettings) {
    int right = 0;
    launch<Memory>(1, 64, settings, [&](Memory&) {
      const unsigned word = (threadIdx.x * 2654435761U) ^ 0x80000000U;
      right += sum_by_shuffles(word) == __reduce_add_sync(kWholeWarp, word) &&
               min_by_shuffles(word) == __reduce_min_sync(kWholeWarp, word);
    });
    CHECK(right == 64);
  }
}

TEST_CASE("CUDA emulation: a barrier that not all threads reach is an error") {
  const auto run = [](auto body) { launch<Memory>(1, 64, kSettings[0], body); };
  const auto some_end = [](Memory&) {
    if (threadIdx.x < 40) __syncthreads();
  };
  const auto two_barriers = [](Memory&) {
    if (threadIdx.x < 40) {
      __syncthreads();
    } else {
      __syncthreads();
    }
  };
  const auto part_of_a_warp = [](Memory&) {
    if (threadIdx.x != 3) __ballot_sync(0xFFFFFFFF, 1);
  };
  const auto one_warp = [](Memory&) {
    if (threadIdx.x < 32) __syncwarp();
    __syncthreads();
  };
  CHECK_THROWS_AS(run(some_end), std::logic_error);
  CHECK_THROWS_AS(run(two_barriers), std::logic_error);
  CHECK_THROWS_AS(run(part_of_a_warp), std::logic_error);
  CHECK_NOTHROW(run(one_warp));
}

TEST_CASE("CUDA emulation: a missing barrier shows") {
  int sums[2] = {};
  for (int i = 0; i < 2; ++i) {
    launch<Memory>(1, 64, kSettings[i], [&](Memory& shared) {
      shared.values[threadIdx.x] = 1;
      if (threadIdx.x == 10) {
        for (const int value : shared.values) sums[i] += value;
      }
    });
  }
  CHECK(sums[0] != sums[1]);
}

}  // namespace
}  // namespace settrain::cuda_emulation
