// The uses of random numbers, and the one way to get them. Every use has a stream of its own, so that no two uses ever
// share a random word, whatever the seed. Part of `rng: 1`: a changed constant changes every result.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "src/core/philox.h"

namespace settrain {

/// The version of everything that maps seeds to random numbers; kept in checkpoints.
inline constexpr int64_t kRngVersion = 1;

/// The uses of random numbers. The constants are digits of pi, so that any two differ in about half their bits.
enum class Stream : uint64_t {
  kLossNoise = 0x243F6A8885A308D3,     // item = class, block = draws, position in the global batch, step
  kAugmentation = 0x13198A2E03707344,  // item = sample, block = decision, position = repetition, epoch as the step
  kShuffle = 0xA4093822299F31D0,       // order of the training samples, by epoch
  kLabelNoise = 0x082EFA98EC4E6C89,    // changed training labels, by sample
  kSplit = 0x452821E638D01377,         // which samples are held out for validation
  kSynthetic = 0xBE5466CF34E90C6C,     // the synthetic data set
  kAten = 0xC0AC29B7C97C50DD,          // seeds of ATen's generator: block 0 for initial weights, block 1 for every step
  kLabelEstimates = 0x3F84D5B5B5470917,  // initial estimates of a loss, item = sample, block = two classes
  kDataSplit = 0x9216D5D98979FB1B,       // `settrain data split`: the images of a class, by the class' name as the step
  kLongTail = 0xD1310BA698DFB5AC,        // which training images of a class stay, by the class as the step
  kSweep = 0x2FFD72DBD01ADFB7,           // random points of a sweep, item = point, block = key
  kBootstrap = 0xB8E1AFED6A267E96,       // images of a resample, item = two of them, block = resample
  kClassSampling = 0xBA7C9045F12C7F99,   // the draws of data.sampler by class, by epoch
  kMix = 0x24A19947B3916CF7,             // mixup and CutMix, block = decision, position = batch of the step, step
  kCalibration = 0x0D95748F728EB658,     // step 0: the images of data.calibration_share; 1: the half that calibrates
                                         // rules; 2: in `settrain calibrate`
  kSubset = 0x636920D871574E69,  // step 0: the superclasses of data.superclass_share; 1: the images of a class that
                                 // eval.subset has, by the class as the block
  kSets = 0x0801F2E2858EFC16,    // randomised sets and how they are calibrated, block = use (conformal_scores.h)
};

/// The key of all the numbers that `seed` gives to `stream`.
constexpr PhiloxKey philox_key(uint64_t seed, Stream stream) {
  return seed ^ static_cast<uint64_t>(stream);
}

/// Four random words, a function of the arguments alone.
constexpr std::array<uint32_t, 4> random_words(uint64_t seed, Stream stream, uint32_t item, uint32_t block = 0,
                                               uint32_t position = 0, uint32_t step = 0) {
  const PhiloxBlock words = philox({{item, block, position, step}}, philox_key(seed, stream));
  return {words.word[0], words.word[1], words.word[2], words.word[3]};
}

/// An integer in [0, n), n >= 1, from one random word. No value's probability differs from 1/n by more than 2^-32, a
/// relative bias of n/2^32: for a few thousand values at most.
constexpr uint32_t uniform_below(uint32_t word, uint32_t n) {
  return static_cast<uint32_t>((uint64_t{word} * n) >> 32);
}

/// An integer in [0, n), n >= 1, from two random words; no probability differs from 1/n by more than 2^-64.
constexpr uint32_t uniform_below(uint32_t high, uint32_t low, uint32_t n) {
  return static_cast<uint32_t>((uint64_t{high} * n + ((uint64_t{low} * n) >> 32)) >> 32);
}

/// A double in [0, 1), a multiple of 2^-53, from two random words.
constexpr double unit_double(uint32_t high, uint32_t low) {
  return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1p-53;
}

/// The numbers 0 to n - 1 in an order drawn uniformly (Fisher and Yates' shuffle), a function of the arguments alone.
/// `step`, `block` and `position` tell apart the orders of one seed and stream: an epoch, a class. Throws
/// std::invalid_argument unless 0 <= n < 2^32.
std::vector<int64_t> permutation(int64_t n, uint64_t seed, Stream stream, uint32_t step = 0, uint32_t block = 0,
                                 uint32_t position = 0);

}  // namespace settrain
