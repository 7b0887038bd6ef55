#include "losses/ops/score_ops.h"

#include <ATen/ATen.h>

#include <limits>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

at::Tensor by_stable_sort(const at::Tensor& values, int64_t rank) {
  return std::get<1>(at::sort(values, /*stable=*/true, -1, /*descending=*/true)).select(-1, rank);
}

TEST_CASE("The index of every rank is that of a stable sort") {
  at::manual_seed(1);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const at::Tensor distinct = at::randn({7, 3, 20}, dtype);
    const at::Tensor tied = at::randint(0, 4, {7, 3, 20}, dtype);
    for (int64_t rank = 0; rank < 20; ++rank) {
      CHECK(at::equal(rank_index(distinct, rank), by_stable_sort(distinct, rank)));
      CHECK(at::equal(rank_index(tied, rank), by_stable_sort(tied, rank)));
    }
  }
}

TEST_CASE("Infinities and NaN have the ranks that a stable sort gives them") {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  const at::Tensor values = at::tensor({nan, 1.0F, inf, nan, -inf, 0.0F, inf, -0.0F}).unsqueeze(0);
  for (int64_t rank = 0; rank < 8; ++rank) {
    CHECK(at::equal(rank_index(values, rank), by_stable_sort(values, rank)));
  }
}

TEST_CASE("Strided values are read as they are seen") {
  const at::Tensor values = at::arange(24, at::kFloat).view({6, 4}).t();
  CHECK(at::equal(rank_index(values, 1), at::full({4}, 4, at::kLong)));
}

}  // namespace
}  // namespace settrain
