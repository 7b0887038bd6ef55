#include "metrics/label_rank.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <limits>

#include "tests/metrics/random_split.h"
#include "tests/metrics/slow_metrics.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("a label's rank counts larger scores") {
  const at::Tensor scores = at::tensor({0.1, 3.0, -2.0, 0.5}, at::kDouble).repeat({4, 1});
  const at::Tensor ranks = label_ranks(scores, at::tensor({0, 1, 2, 3}, at::kLong));
  CHECK(ranks.equal(at::tensor({2, 0, 3, 1}, at::kLong)));
}

TEST_CASE("equal scores rank by class index") {
  const at::Tensor scores = at::tensor({1.F, 2.F, 1.F, 2.F, 1.F}).repeat({5, 1});
  const at::Tensor ranks = label_ranks(scores, at::tensor({0, 1, 2, 3, 4}, at::kLong));
  CHECK(ranks.equal(at::tensor({2, 0, 3, 1, 4}, at::kLong)));
}

TEST_CASE("zero and minus zero are equal scores") {
  const at::Tensor scores = at::tensor({-0.F, 0.F});
  CHECK(label_ranks(scores.unsqueeze(0), at::tensor({1}, at::kLong)).item<int64_t>() == 1);
}

TEST_CASE("ranks agree with a stable sort, with and without ties") {
  for (const int64_t levels : {0, 3}) {
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      const SplitScores split = test::random_split(7 + levels, 60, 11, dtype, levels);
      const std::vector<int64_t> ranks = test::to_vector(label_ranks(split.scores, split.labels));
      const test::Matrix rows = test::to_matrix(split.scores);
      for (size_t i = 0; i < rows.size(); ++i) {
        const std::vector<int64_t> order = test::slow_top_k(rows[i], 11);
        CHECK(order[ranks[i]] == split.labels[i].item<int64_t>());
      }
    }
  }
}

TEST_CASE("rows beyond the first block are ranked too") {
  // Two rows of 2^21 classes fill a block, so that five rows take three.
  const int64_t classes = int64_t{1} << 21;
  const at::Tensor scores = at::arange(classes, at::kFloat).unsqueeze(0).expand({5, classes});
  const at::Tensor labels = at::tensor({int64_t{0}, classes - 1, int64_t{5}, classes - 3, int64_t{9}}, at::kLong);
  CHECK(label_ranks(scores, labels).equal(classes - 1 - labels));
}

TEST_CASE("a label's rank is the definition's, with ties, infinities and NaN") {
  const int64_t threads = at::get_num_threads();
  at::set_num_threads(2);
  for (uint64_t seed = 0; seed < 12; ++seed) {
    // Enough samples for two threads; of NaN each comparison is false.
    SplitScores split = test::random_split(seed, 2500, 53, seed % 2 ? at::kFloat : at::kDouble, seed % 3 ? 6 : 0);
    at::Tensor all = split.scores.view({-1});
    if (seed >= 4) all.slice(0, 3, at::nullopt, 17).fill_(std::nan(""));
    if (seed >= 8) all.slice(0, 4, at::nullopt, 23).fill_(std::numeric_limits<double>::infinity());
    if (seed >= 8) all.slice(0, 5, at::nullopt, 29).fill_(-std::numeric_limits<double>::infinity());
    const at::Tensor label_score = split.scores.gather(1, split.labels.unsqueeze(1));
    const at::Tensor before = at::arange(53).lt(split.labels.unsqueeze(1));
    const at::Tensor expected =
        split.scores.gt(label_score).logical_or(split.scores.eq(label_score).logical_and(before)).sum(1);
    CAPTURE(seed);
    CHECK(label_ranks(split.scores, split.labels).equal(expected));
    CHECK(label_ranks(split.scores.t().contiguous().t(), split.labels).equal(expected));
    CHECK(label_ranks(split.scores, split.labels.repeat_interleave(2).slice(0, 0, at::nullopt, 2)).equal(expected));
  }
  at::set_num_threads(static_cast<int>(threads));
}

}  // namespace
}  // namespace settrain
