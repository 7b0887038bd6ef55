#include "src/core/random.h"

#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>

namespace settrain {

std::vector<int64_t> permutation(int64_t n, uint64_t seed, Stream stream, uint32_t step, uint32_t block,
                                 uint32_t position) {
  if (n < 0 || n > std::numeric_limits<uint32_t>::max()) throw std::invalid_argument("permutation: n is out of range");
  std::vector<int64_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), int64_t{0});
  for (int64_t last = n - 1; last > 0; --last) {
    const auto words = random_words(seed, stream, static_cast<uint32_t>(last), block, position, step);
    const uint32_t other = uniform_below(words[0], words[1], static_cast<uint32_t>(last + 1));
    std::swap(order[static_cast<size_t>(last)], order[other]);
  }
  return order;
}

}  // namespace settrain
