#include "src/loader/sampler.h"

#include <algorithm>
#include <catch2/catch.hpp>

using namespace settrain;

TEST_CASE("without a seed an epoch goes through the split as it is", "[fast]") {
  CHECK(epoch_order(4, std::nullopt, 3) == std::vector<int64_t>{0, 1, 2, 3});
}

TEST_CASE("a shuffled epoch holds every sample once and follows (seed, epoch)", "[fast]") {
  const std::vector<int64_t> order = epoch_order(1000, 4, 0);
  CHECK(order == epoch_order(1000, 4, 0));
  CHECK(order != epoch_order(1000, 4, 1));
  CHECK(order != epoch_order(1000, 5, 0));
  std::vector<int64_t> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  CHECK(sorted == epoch_order(1000, std::nullopt, 0));
  CHECK(order != sorted);
}
