// Philox4x32-10, the counter-based random number generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers:
// as easy as 1, 2, 3" (SC 2011): four random words are a function of a counter and a key, and nothing else. For the CPU
// and CUDA alike.
#pragma once

#include <cstdint>

#if defined(__CUDACC__)
#define SETTRAIN_HOST_DEVICE __host__ __device__
#else
// By force: no copy made for a larger instruction set may end up in code for the baseline.
#define SETTRAIN_HOST_DEVICE __attribute__((always_inline))
#endif

namespace settrain {

/// Four words: a counter, or the random words that Philox makes of it. Word: uint32_t, or several lanes of it.
template <class Word>
struct PhiloxWords {
  Word word[4];
};
using PhiloxBlock = PhiloxWords<uint32_t>;

/// The key of a family of blocks. Its low half is the paper's first key word.
using PhiloxKey = uint64_t;

/// factor * word for philox().
struct WordArithmetic {
  using Word = uint32_t;
  SETTRAIN_HOST_DEVICE static constexpr void multiply(uint32_t factor, uint32_t word, uint32_t& high, uint32_t& low) {
    const uint64_t product = uint64_t{factor} * word;
    high = static_cast<uint32_t>(product >> 32);
    low = static_cast<uint32_t>(product);
  }
};

/// Four independent, uniformly distributed 32-bit words. Every bit of `counter` and `key` matters.
template <class Arithmetic = WordArithmetic>
SETTRAIN_HOST_DEVICE constexpr PhiloxWords<typename Arithmetic::Word> philox(
    PhiloxWords<typename Arithmetic::Word> counter, PhiloxKey key) {
  using Word = typename Arithmetic::Word;
  uint32_t key_low = static_cast<uint32_t>(key);
  uint32_t key_high = static_cast<uint32_t>(key >> 32);
  for (int round = 0; round < 10; ++round) {
    Word high0{}, low0{}, high2{}, low2{};
    Arithmetic::multiply(0xD2511F53, counter.word[0], high0, low0);
    Arithmetic::multiply(0xCD9E8D57, counter.word[2], high2, low2);
    counter = {{high2 ^ counter.word[1] ^ key_low, low2, high0 ^ counter.word[3] ^ key_high, low0}};
    key_low += 0x9E3779B9;   // the golden ratio's fraction
    key_high += 0xBB67AE85;  // that of the square root of three
  }
  return counter;
}

}  // namespace settrain
