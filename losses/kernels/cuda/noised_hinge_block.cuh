// The noised hinge of a row, by a block.
#pragma once

#include "losses/kernels/cuda/noised_rank.cuh"

namespace settrain {

struct NoisedHingeShared {
  NoisedStream stream;
  NoisedRadix radix;
  float values[kDrawsAtOnce];  // of the rank, one for each draw
};

/// Leaves in stream.best the `rank` highest of the threads' best classes. Returns whether the row holds a NaN.
__device__ inline bool find_best(const NoisedRow& row, int rank, NoisedStream& stream) {
  const int thread = static_cast<int>(threadIdx.x);
  Candidate best{0, 0};
  bool is_nan = false;
  for (int32_t c = thread; c < row.classes; c += kNoisedThreads) {
    const float score = row.scores[c];
    is_nan |= score != score;
    if (ordered(score) > best.key) best = {ordered(score), c};
  }
  Candidates& all = stream.draws[0];
  if (thread < row.classes) {
    all.key[thread] = best.key;
    all.item[thread] = best.item;
  }
  if (thread == 0) all.count = row.classes < kNoisedThreads ? row.classes : kNoisedThreads;
  if (__syncthreads_count(is_nan) != 0) return true;
  if (rank <= kMostStreamedRank && thread < kWarpSize) {
    all.keep(rank);
    for (int i = lane(); i < rank; i += kWarpSize) stream.best[i] = all.item[i];
  }
  __syncthreads();
  return false;
}

__device__ inline void noised_hinge_block(const NoisedHinge& hinge, float* losses, int32_t* chosen,
                                          NoisedHingeShared& shared) {
  const int64_t index = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const NoisedRow row = noised_row(hinge, index);
  const int rank = static_cast<int>(hinge.k) + 1;
  int32_t* const chosen_row = chosen + index * hinge.draws;
  if (find_best(row, rank, shared.stream)) {
    for (int draw = thread; draw < row.draws; draw += kNoisedThreads) chosen_row[draw] = 0;
    if (thread == 0) losses[index] = ScalarArithmetic::from_bits(0x7FC00000);
    return;
  }
  const bool streamed = rank <= kMostStreamedRank;
  const bool prune = hinge.prune && !hinge.noise;
  float sum = 0;
  const int at_once = streamed ? kDrawsAtOnce : 1;
  for (int first = 0; first < row.draws; first += at_once) {
    const int num = row.draws - first < at_once ? row.draws - first : at_once;
    const Candidate found = streamed ? select_streamed(row, first, num, rank, prune, shared.stream)
                                     : select_by_radix(row, first, rank, shared.radix);
    const int warp = thread / kWarpSize;
    if (warp < num && lane() == 0) {
      chosen_row[first + warp] = found.item;
      shared.values[warp] = unordered(found.key);
    }
    __syncthreads();
    for (int draw = 0; draw < num; ++draw) sum += shared.values[draw];
    __syncthreads();
  }
  if (thread != 0) return;
  const float margin = hinge.margins ? hinge.margins[index] : hinge.margin;
  const int64_t label = hinge.labels[index];
  const bool is_class = label >= 0 && label < hinge.classes;
  const float of_label = is_class ? row.scores[label] : static_cast<float>(HUGE_VAL - HUGE_VAL);
  const float loss = hinge.factor * (sum / static_cast<float>(hinge.draws) - of_label + margin);
  losses[index] = loss <= 0 ? 0 : loss;
}

/// The gradient of a row.
__device__ inline void noised_hinge_gradient_block(const NoisedHinge& hinge, const float* losses, const int32_t* chosen,
                                                   const float* outer, float* gradient) {
  const int64_t index = blockIdx.x;
  const int thread = static_cast<int>(threadIdx.x);
  const int32_t classes = static_cast<int32_t>(hinge.classes), draws = static_cast<int32_t>(hinge.draws);
  const int32_t label = static_cast<int32_t>(hinge.labels[index]);
  const int32_t* const chosen_row = chosen + index * draws;
  float* const row = gradient + index * classes;
  const float loss = losses[index], slope = outer[index] * hinge.factor;
  const float elsewhere = loss != loss ? loss : 0;
  const bool active = loss > 0;
  for (int32_t c = thread; c < classes; c += kNoisedThreads) row[c] = active && c == label ? -slope : elsewhere;
  __syncthreads();
  if (!active) return;
  for (int32_t draw = thread; draw < draws; draw += kNoisedThreads) {
    const int32_t c = chosen_row[draw];
    int32_t times = 0, before = 0;
    for (int32_t other = 0; other < draws; ++other) {
      times += chosen_row[other] == c;
      before += other < draw && chosen_row[other] == c;
    }
    const float share = static_cast<float>(times) / static_cast<float>(draws);
    if (before == 0) row[c] = slope * (c == label ? share - 1 : share);  // one thread a class
  }
}

}  // namespace settrain
