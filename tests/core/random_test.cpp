#include "src/core/random.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <stdexcept>

#include "tests/support/catch2.h"

using namespace settrain;

TEST_CASE("a permutation holds every number once") {
  for (const int64_t n : {0, 1, 2, 1000}) {
    std::vector<int64_t> order = permutation(n, 4, Stream::kShuffle);
    std::sort(order.begin(), order.end());
    REQUIRE(static_cast<int64_t>(order.size()) == n);
    for (int64_t i = 0; i < n; ++i) CHECK(order[static_cast<size_t>(i)] == i);
  }
}

TEST_CASE("a permutation follows seed, stream and step alone") {
  const auto order = permutation(100, 4, Stream::kShuffle, 7);
  CHECK(order == permutation(100, 4, Stream::kShuffle, 7));
  CHECK(order != permutation(100, 5, Stream::kShuffle, 7));
  CHECK(order != permutation(100, 4, Stream::kSplit, 7));
  CHECK(order != permutation(100, 4, Stream::kShuffle, 8));
}

TEST_CASE("all orders of four are equally likely") {
  std::map<std::vector<int64_t>, int> counts;
  constexpr int kDraws = 24000;
  for (uint32_t step = 0; step < kDraws; ++step) ++counts[permutation(4, 1, Stream::kShuffle, step)];
  REQUIRE(counts.size() == 24);
  const double sigma = std::sqrt(kDraws * (1.0 / 24) * (23.0 / 24));
  for (const auto& [order, count] : counts) CHECK(std::abs(count - kDraws / 24.0) < 5 * sigma);
}

TEST_CASE("a permutation refuses sizes that its words cannot reach") {
  CHECK_THROWS_AS(permutation(-1, 0, Stream::kShuffle), std::invalid_argument);
  CHECK_THROWS_AS(permutation(int64_t{1} << 32, 0, Stream::kShuffle), std::invalid_argument);
}
