// Which class has a rank in each draw of a row's noise: select_streamed() for up to eight draws at once, and
// select_by_radix() for ranks that do not fit its lists.
#pragma once

#include <cstdint>

#include "losses/kernels/cuda/warp.cuh"
#include "losses/kernels/noised_kernels.h"
#include "src/core/normal.h"

namespace settrain {

// --- The perturbed scores of one sample, as integers that sort alike.

/// Larger for larger values; the same for both zeros. Never 0.
__device__ inline uint32_t ordered(float value) {
  const uint32_t bits = static_cast<uint32_t>(ScalarArithmetic::to_bits(value == 0 ? 0.0F : value));
  return bits >> 31 ? ~bits : bits | 0x80000000;
}

/// The value that has this integer.
__device__ inline float unordered(uint32_t key) {
  return ScalarArithmetic::from_bits(static_cast<int32_t>(key >> 31 ? key & 0x7FFFFFFF : ~key));
}

struct NoisedRow {
  const float* scores;  // [classes]
  const float* noise;   // [draws, classes], or null
  float epsilon;
  int32_t classes, draws;
  NoiseCounter counter;

  __device__ uint32_t perturbed(int32_t c, float normal) const {
    return ordered(ScalarArithmetic::fma(epsilon, normal, scores[c]));
  }
  __device__ float given(int32_t c, int32_t draw) const { return noise[static_cast<int64_t>(draw) * classes + c]; }

  /// ordered(s_c + epsilon z_c) in one draw.
  __device__ uint32_t perturbed_in(int32_t draw, int32_t c) const {
    if (noise) return perturbed(c, given(c, draw));
    return perturbed(c, normal(noise_word(counter, static_cast<uint32_t>(c), static_cast<uint32_t>(draw),
                                          static_cast<uint32_t>(draws))));
  }

  /// The same in up to four draws, from `draw` on, a multiple of 4: from one Philox block.
  __device__ void perturbed_in_four(int32_t draw, int32_t c, uint32_t (&keys)[4]) const {
    const DrawBlock block = draw_block(static_cast<uint32_t>(draw), static_cast<uint32_t>(draws));
    const auto item = static_cast<uint32_t>(c);
    PhiloxBlock words{};
    if (!noise) words = philox({{item / block.classes, block.index, counter.position, counter.step}}, counter.key);
    const uint32_t first = item % block.classes * block.draws;
    for (uint32_t i = 0; i < 4; ++i) {
      if (i >= block.draws) continue;
      // A choice and no index: an array with an index from outside would not stay in registers.
      const uint32_t at = first + i;
      const uint32_t word =
          at & 2 ? (at & 1 ? words.word[3] : words.word[2]) : (at & 1 ? words.word[1] : words.word[0]);
      keys[i] = perturbed(c, noise ? given(c, draw + static_cast<int32_t>(i)) : normal(word));
    }
  }
};

__device__ inline NoisedRow noised_row(const NoisedHinge& hinge, int64_t row) {
  NoiseCounter counter = hinge.first;
  counter.position += static_cast<uint32_t>(row);
  if (hinge.step) counter.step = static_cast<uint32_t>(*hinge.step);
  return {hinge.scores + row * hinge.classes,
          hinge.noise ? hinge.noise + row * hinge.draws * hinge.classes : nullptr,
          hinge.epsilon,
          static_cast<int32_t>(hinge.classes),
          static_cast<int32_t>(hinge.draws),
          counter};
}

// --- A short list in shared memory of (key, class) pairs, of which a warp keeps the best.

/// The rank-th largest of key(0), ..., key(count - 1); 1 <= rank <= count. Bit by bit. To be called by a whole warp.
template <class Key>
__device__ uint32_t select_in_warp(int count, int rank, const Key& key) {
  uint32_t found = 0;
  for (uint32_t bit = 0x80000000; bit != 0; bit >>= 1) {
    const uint32_t tried = found | bit;
    unsigned reaching = 0;
    for (int i = lane(); i < count; i += kWarpSize) reaching += key(i) >= tried;
    reaching = __reduce_add_sync(kWholeWarp, reaching);
    if (reaching == static_cast<unsigned>(rank)) {  // then it is the least of these, mostly long before the last bit
      uint32_t least = ~uint32_t{0};
      for (int i = lane(); i < count; i += kWarpSize) {
        if (key(i) >= tried && key(i) < least) least = key(i);
      }
      return __reduce_min_sync(kWholeWarp, least);
    }
    if (reaching > static_cast<unsigned>(rank)) found = tried;
  }
  return found;
}

/// A place in a list for each lane that wants one. To be called by a whole warp.
__device__ inline int reserve(int* count, bool wanted) {
  const unsigned lanes = __ballot_sync(kWholeWarp, wanted);
  int first = 0;
  if (lane() == 0 && lanes != 0) first = atomicAdd(count, __popc(lanes));
  first = __shfl_sync(kWholeWarp, first, 0);
  return first + __popc(lanes & ((1U << lane()) - 1));
}

struct Candidate {
  uint32_t key;
  int32_t item;  // a class
};

struct Candidates {
  static constexpr int kCapacity = 512;
  uint32_t key[kCapacity];
  int32_t item[kCapacity];
  int count;

  /// The candidate of that rank: larger keys come first, then lower classes. This and the two below: to be called by a
  /// whole warp.
  __device__ Candidate select(int rank) const {
    const uint32_t value = select_in_warp(count, rank, [&](int i) { return key[i]; });
    unsigned larger = 0;
    for (int i = lane(); i < count; i += kWarpSize) larger += key[i] > value;
    larger = __reduce_add_sync(kWholeWarp, larger);
    // Complements, since the lowest class comes first. None is 0.
    const uint32_t found = select_in_warp(count, rank - static_cast<int>(larger),
                                          [&](int i) { return key[i] == value ? ~static_cast<uint32_t>(item[i]) : 0; });
    return {value, static_cast<int32_t>(~found)};
  }

  /// Drops all behind that rank. Returns the last one kept.
  __device__ Candidate keep(int rank) {
    const Candidate last = select(rank);
    const int before = count;
    int kept = 0;
    for (int begin = 0; begin < before; begin += kWarpSize) {
      const int i = begin + lane();
      const Candidate own = i < before ? Candidate{key[i], item[i]} : Candidate{0, 0};
      const bool stays = i < before && (own.key > last.key || (own.key == last.key && own.item <= last.item));
      const unsigned lanes = __ballot_sync(kWholeWarp, stays);
      __syncwarp();  // all have read before one writes
      if (stays) {
        const int place = kept + __popc(lanes & ((1U << lane()) - 1));
        key[place] = own.key;
        item[place] = own.item;
      }
      kept += __popc(lanes);
      __syncwarp();
    }
    if (lane() == 0) count = kept;
    __syncwarp();
    return last;
  }

  __device__ void add(const Candidate& candidate, bool wanted) {
    const int place = reserve(&count, wanted);
    if (wanted) {
      key[place] = candidate.key;
      item[place] = candidate.item;
    }
  }
};

// --- The classes stream past, and for each draw a warp keeps the best.
//
// Pruning: whatever the draw, the best classes' own perturbed scores bound the wanted one from below. A class needs no
// normal where even the largest possible one would leave its score below the least of these bounds. The bounds are
// exact, since fma is monotone: no class is left out that matters, and the result is the same to the last bit.

constexpr int kNoisedThreads = 256;
constexpr int kDrawsAtOnce = kNoisedThreads / kWarpSize;

/// Larger ranks do not fit the lists.
constexpr int kMostStreamedRank = Candidates::kCapacity - kNoisedThreads;

struct NoisedStream {
  static constexpr int kAhead = 4;  // scores that a thread loads at once
  static constexpr int kListed = 2 * kAhead * kNoisedThreads;
  Candidates draws[kDrawsAtOnce];
  uint32_t bound[kDrawsAtOnce];     // no candidate of a draw below it can come to the rank
  int32_t best[kMostStreamedRank];  // where classes are left out: `rank` classes with high scores
  int32_t list[kListed];            // classes to be drawn
  int listed;
};

/// Sets the bound of a draw, and empties its list. To be called by a whole warp.
__device__ inline void start_draw(const NoisedRow& row, int draw, int rank, bool prune, Candidates& candidates,
                                  uint32_t& bound, const int32_t* best) {
  uint32_t least = prune ? ~uint32_t{0} : 0;
  if (prune) {
    for (int i = lane(); i < rank; i += kWarpSize) {
      const uint32_t key = row.perturbed_in(draw, best[i]);
      least = key < least ? key : least;
    }
  }
  least = __reduce_min_sync(kWholeWarp, least);
  if (lane() == 0) {
    bound = least;
    candidates.count = 0;
  }
}

/// Lists classes from `next` on that may matter, as many as fit. Returns how many.
__device__ inline int fill_list(const NoisedRow& row, uint32_t bound, int& next, NoisedStream& stream) {
  constexpr int kAhead = NoisedStream::kAhead;
  const int thread = static_cast<int>(threadIdx.x);
  int listed = 0;
  while (next < row.classes && listed <= NoisedStream::kListed - kAhead * kNoisedThreads) {
    float ahead[kAhead];
    for (int i = 0; i < kAhead; ++i) {
      const int c = next + i * kNoisedThreads + thread;
      ahead[i] = c < row.classes ? row.scores[c] : 0;
    }
    for (int i = 0; i < kAhead && next < row.classes; ++i, next += kNoisedThreads) {
      const int c = next + thread;
      const bool wanted = c < row.classes && ordered(ScalarArithmetic::fma(row.epsilon, kMaxNormal, ahead[i])) >= bound;
      const int place = reserve(&stream.listed, wanted);
      if (wanted) stream.list[place] = c;
      listed += __syncthreads_count(wanted);
    }
  }
  return listed;
}

/// Draws for a listed class a thread.
__device__ inline void draw_listed(const NoisedRow& row, int first_draw, int num_draws, int begin, int listed,
                                   NoisedStream& stream) {
  const int place = begin + static_cast<int>(threadIdx.x);
  const int32_t c = place < listed ? stream.list[place] : -1;
  for (int first = 0; first < num_draws; first += 4) {
    uint32_t keys[4] = {};
    if (c >= 0) row.perturbed_in_four(first_draw + first, c, keys);
    for (int i = 0; i < 4; ++i) {
      if (first + i >= num_draws) continue;
      stream.draws[first + i].add({keys[i], c}, c >= 0 && keys[i] >= stream.bound[first + i]);
    }
  }
}

/// The candidate of that rank in draw first_draw + w, in warp w < num_draws. first_draw is a multiple of 4. With
/// `prune`, stream.best holds `rank` different classes. To be called by a whole block, as the functions above are.
__device__ inline Candidate select_streamed(const NoisedRow& row, int first_draw, int num_draws, int rank, bool prune,
                                            NoisedStream& stream) {
  const int warp = static_cast<int>(threadIdx.x) / kWarpSize;
  const bool has_draw = warp < num_draws;
  if (has_draw) {
    start_draw(row, first_draw + warp, rank, prune, stream.draws[warp], stream.bound[warp], stream.best);
  }
  if (threadIdx.x == 0) stream.listed = 0;
  __syncthreads();

  for (int next = 0; next < row.classes;) {
    uint32_t bound = prune ? ~uint32_t{0} : 0;
    for (int draw = 0; prune && draw < num_draws; ++draw) {
      if (stream.bound[draw] < bound) bound = stream.bound[draw];
    }
    const int listed = fill_list(row, bound, next, stream);
    for (int begin = 0; begin < listed; begin += kNoisedThreads) {
      draw_listed(row, first_draw, num_draws, begin, listed, stream);
      __syncthreads();
      if (has_draw && stream.draws[warp].count > Candidates::kCapacity - kNoisedThreads) {
        const Candidate last = stream.draws[warp].keep(rank);
        if (lane() == 0) stream.bound[warp] = last.key;
      }
      __syncthreads();
    }
    if (threadIdx.x == 0) stream.listed = 0;
    __syncthreads();
  }
  return has_draw ? stream.draws[warp].select(rank) : Candidate{0, 0};
}

// --- Any rank, in one draw: digit by digit of (perturbed score, class), most significant first. Every digit draws
// anew.

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
