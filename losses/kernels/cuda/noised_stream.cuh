// Which class has a rank in each of up to eight draws: the classes stream past, and a warp a draw keeps the best.
//
// Pruning: whatever the draw, the best classes' own perturbed scores bound the wanted one from below. A class whose
// score cannot come to the least of these bounds, were its normal the largest there is, needs none. The bounds are
// exact, since fma is monotone: no class is left out that matters, and the result is the same to the last bit.
#pragma once

#include "losses/kernels/cuda/candidates.cuh"
#include "losses/kernels/cuda/noised_row.cuh"

namespace settrain {

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

/// What a warp knows of its draw beforehand.
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

}  // namespace settrain
