// Philox4x32-10, the counter-based random number generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
// as easy as 1, 2, 3" (SC 2011): four random words are a function of a counter and a key, and nothing else. For the CPU
// and CUDA alike.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define SETTRAIN_HOST_DEVICE __host__ __device__
#else
#define SETTRAIN_HOST_DEVICE
#endif

namespace settrain {

/// Four words: a counter, or the random words that Philox makes of it.
struct PhiloxBlock {
  uint32_t word[4];
};

/// The key of a family of blocks. Its low half is the paper's first key word.
using PhiloxKey = uint64_t;

/// One of the ten rounds.
SETTRAIN_HOST_DEVICE constexpr PhiloxBlock philox_round(PhiloxBlock block, uint32_t key_low, uint32_t key_high) {
  const uint64_t product0 = uint64_t{0xD2511F53} * block.word[0];
  const uint64_t product1 = uint64_t{0xCD9E8D57} * block.word[2];
  return {{static_cast<uint32_t>(product1 >> 32) ^ block.word[1] ^ key_low, static_cast<uint32_t>(product1),
           static_cast<uint32_t>(product0 >> 32) ^ block.word[3] ^ key_high, static_cast<uint32_t>(product0)}};
}

/// Four independent, uniformly distributed 32-bit words. Every bit of `counter` and `key` matters.
SETTRAIN_HOST_DEVICE constexpr PhiloxBlock philox(PhiloxBlock counter, PhiloxKey key) {
  uint32_t key_low = static_cast<uint32_t>(key);
  uint32_t key_high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    counter = philox_round(counter, key_low, key_high);
    key_low += 0x9E3779B9;   // the golden ratio's fraction
    key_high += 0xBB67AE85;  // that of the square root of three
  }
  return counter;
}

}  // namespace settrain
