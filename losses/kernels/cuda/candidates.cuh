// A short list in shared memory of (key, class) pairs, and the best of them: what a warp does for one draw.
#pragma once

#include <cstdint>

#include "losses/kernels/cuda/warp.cuh"

namespace settrain {

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

  /// The one of that rank: larger keys come first, then lower classes. All three: to be called by a whole warp.
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

}  // namespace settrain
