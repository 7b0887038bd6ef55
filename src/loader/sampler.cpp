#include "src/loader/sampler.h"

#include <numeric>

#include "src/core/permutation.h"
#include "src/core/streams.h"

namespace settrain {

std::vector<int64_t> epoch_order(int64_t size, std::optional<uint64_t> seed, int64_t epoch) {
  if (seed) return permutation(size, *seed, Stream::kShuffle, static_cast<uint32_t>(epoch));
  std::vector<int64_t> order(static_cast<size_t>(size));
  std::iota(order.begin(), order.end(), int64_t{0});
  return order;
}

}  // namespace settrain
