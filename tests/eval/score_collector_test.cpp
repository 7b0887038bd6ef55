#include <ATen/ATen.h>

#include <limits>

#include "src/core/error.h"
#include "src/eval/evaluator.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("batches of any size come out in the order in which they went in") {
  const at::Tensor scores = at::arange(21, at::kFloat).view({7, 3}),
                   labels = at::tensor({0, 1, 2, 0, 1, 2, 0}, at::kLong);
  ScoreCollector collector(7, 3, at::kCPU);
  for (const auto& [first, last] : {std::pair{0, 3}, std::pair{3, 6}, std::pair{6, 7}}) {
    collector.add(scores.slice(0, first, last), labels.slice(0, first, last));
  }
  const SplitScores split = collector.finish();
  CHECK(split.scores.equal(scores));
  CHECK(split.labels.equal(labels));
}

TEST_CASE("scores of another dtype are converted, and their gradient's history is dropped") {
  ScoreCollector collector(2, 2, at::kCPU, at::kDouble);
  collector.add(at::ones({1, 2}, at::kHalf), at::zeros({1}, at::kLong));
  collector.add(at::ones({1, 2}).requires_grad_().mul(2), at::zeros({1}, at::kInt));
  const SplitScores split = collector.finish();
  CHECK(split.scores.scalar_type() == at::kDouble);
  CHECK_FALSE(split.scores.requires_grad());
  CHECK(split.scores.equal(at::tensor({1., 1., 2., 2.}, at::kDouble).view({2, 2})));
}

TEST_CASE("label sets come with their batches") {
  ScoreCollector collector(3, 2, at::kCPU, at::kFloat, /*has_label_sets=*/true);
  const at::Tensor sets = at::tensor({1, 0, 1, 1, 0, 1}).view({3, 2});
  const auto add = [&](int64_t first, int64_t last, const at::Tensor& batch) {
    collector.add(at::zeros({last - first, 2}), at::zeros({last - first}, at::kLong), batch);
  };
  add(0, 2, sets.slice(0, 0, 2).to(at::kByte));
  CHECK_THROWS_AS(add(2, 3, sets), ShapeError);
  add(2, 3, sets.slice(0, 2, 3).to(at::kBool));
  CHECK(collector.finish().label_sets.equal(sets.to(at::kBool)));
}

TEST_CASE("more or fewer samples than announced are refused") {
  ScoreCollector collector(3, 2, at::kCPU);
  collector.add(at::zeros({2, 2}), at::zeros({2}, at::kLong));
  CHECK_THROWS_AS(collector.finish(), ShapeError);
  CHECK_THROWS_WITH(collector.finish(), Catch::Contains("expected 3") && Catch::Contains("got 2"));
  CHECK_THROWS_AS(collector.add(at::zeros({2, 2}), at::zeros({2}, at::kLong)), ShapeError);
  collector.add(at::zeros({1, 2}), at::zeros({1}, at::kLong));
  CHECK_NOTHROW(collector.finish());
}

TEST_CASE("a batch of another shape is refused") {
  ScoreCollector collector(3, 2, at::kCPU);
  CHECK_THROWS_AS(collector.add(at::zeros({2, 3}), at::zeros({2}, at::kLong)), ShapeError);
  CHECK_THROWS_AS(collector.add(at::zeros({2, 2}), at::zeros({3}, at::kLong)), ShapeError);
}

TEST_CASE("a score that is not finite is found by its position in the split") {
  ScoreCollector collector(4, 2, at::kCPU);
  at::Tensor scores = at::zeros({2, 2});
  collector.add(scores, at::zeros({2}, at::kLong));
  scores[1][0] = std::numeric_limits<float>::quiet_NaN();
  collector.add(scores, at::zeros({2}, at::kLong));
  CHECK_THROWS_AS(collector.finish(), NumericalError);
  CHECK_THROWS_WITH(collector.finish(), Catch::Contains("sample 3"));
}

TEST_CASE("samples without a label can be gathered for their scores") {
  ScoreCollector collector(2, 2, at::kCPU);
  collector.add(at::ones({2, 2}), at::full({2}, -1, at::kLong));
  CHECK(collector.finish().scores.equal(at::ones({2, 2})));
}

}  // namespace
}  // namespace settrain
