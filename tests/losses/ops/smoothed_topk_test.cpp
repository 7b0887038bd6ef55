#include "losses/ops/smoothed_topk.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

at::Tensor doubles(std::initializer_list<double> values, at::IntArrayRef shape) {
  return at::tensor(std::vector<double>(values), at::kDouble).view(shape);
}

TEST_CASE("Smoothed top-K by hand: each draw's rank, its mean, its gradient") {
  const at::Tensor scores = doubles({1, 2, 3}, {1, 3});
  // Perturbed: {1, 2, 3}, {4, 2, 3}, {1, 5, 3}, {4, 5, 3}. Second largest: 2, 3, 3, 4.
  const at::Tensor noise = doubles({0, 0, 0, 6, 0, 0, 0, 6, 0, 6, 6, 0}, {1, 4, 3});
  const SmoothedTopk result = smoothed_topk(scores, noise, 2, 0.5);
  CHECK(at::equal(result.chosen, at::tensor({1, 2, 2, 0}, at::kLong).view({1, 4})));
  CHECK(result.values.item<double>() == Approx(3.0));
  const auto value = [&](const at::Tensor& s) { return smoothed_topk(s, noise, 2, 0.5).values.sum(); };
  CHECK(test::near(test::gradient_of(value, scores), doubles({0.25, 0.25, 0.5}, {1, 3})));
  CHECK(test::gradient_error(value, scores) < 1e-9);
}

TEST_CASE("Smoothed top-K: ties go to the lower class, for every rank") {
  const at::Tensor scores = at::zeros({2, 4}, at::kFloat), noise = at::zeros({2, 3, 4});
  for (int64_t rank = 1; rank <= 4; ++rank) {
    const SmoothedTopk result = smoothed_topk(scores, noise, rank, 1.0);
    CHECK(at::equal(result.chosen, at::full({2, 3}, rank - 1, at::kLong)));
    CHECK(at::equal(result.values, at::zeros({2})));
  }
}

TEST_CASE("Smoothed top-K without noise is the rank itself") {
  at::manual_seed(1);
  const at::Tensor scores = at::randn({5, 30}, at::kDouble);
  const at::Tensor sorted = std::get<0>(at::sort(scores, 1, /*descending=*/true));
  CHECK(test::near(smoothed_topk(scores, at::randn({5, 2, 30}), 7, 0.0).values, sorted.select(1, 6)));
}

TEST_CASE("Smoothed top-K permutes with the classes") {
  at::manual_seed(2);
  const at::Tensor scores = at::randn({5, 30}), noise = at::randn({5, 4, 30});
  const at::Tensor order = at::randperm(30, at::kLong);
  const SmoothedTopk result = smoothed_topk(scores, noise, 6, 0.5);
  const SmoothedTopk permuted = smoothed_topk(scores.index_select(1, order), noise.index_select(2, order), 6, 0.5);
  CHECK(at::equal(result.values, permuted.values));
  CHECK(at::equal(result.chosen, order.index_select(0, permuted.chosen.view(-1)).view({5, 4})));
}

TEST_CASE("The smoothed sum by hand, as the thesis illustrates its draws") {
  const at::Tensor scores = doubles({2.4, 2.6, 2.3, 0.5}, {1, 4});
  const at::Tensor noise = doubles({0.2, -0.1, 0.1, 0.3, 0.1, 0.1, -0.1, 0.1, -0.1, -0.1, 0.1, -0.1}, {1, 3, 4});
  const auto value = [&](const at::Tensor& s) { return smoothed_topk_sum(s, noise, 2, 1.0).sum(); };
  CHECK(value(scores).item<double>() == Approx((5.1 + 5.2 + 4.9) / 3));
  CHECK(test::near(test::gradient_of(value, scores), doubles({2.0 / 3, 1, 1.0 / 3, 0}, {1, 4})));
  CHECK(smoothed_topk(scores, noise, 2, 1.0).values.item<double>() == Approx((2.5 + 2.5 + 2.4) / 3));
}

TEST_CASE("The smoothed sum adds up the ranks, its gradient too; ties go to the lower class") {
  at::manual_seed(3);
  const at::Tensor noise = at::randn({5, 6, 9}), few = at::randint(3, {5, 9}).to(at::kDouble);
  for (const at::Tensor& scores : {at::randn({5, 9}, at::kDouble), few}) {
    const double epsilon = scores.is_same(few) ? 0 : 0.7;
    at::Tensor sum = at::zeros({5}, at::kDouble), gradient = at::zeros({5, 9}, at::kDouble);
    for (int64_t k = 1; k <= 9; ++k) {
      CAPTURE(k, epsilon);
      sum = sum + smoothed_topk(scores, noise, k, epsilon).values;
      gradient =
          gradient + test::gradient_of(
                         [&](const at::Tensor& s) { return smoothed_topk(s, noise, k, epsilon).values.sum(); }, scores);
      CHECK(test::near(smoothed_topk_sum(scores, noise, k, epsilon), sum));
      CHECK(test::near(
          test::gradient_of([&](const at::Tensor& s) { return smoothed_topk_sum(s, noise, k, epsilon).sum(); }, scores),
          gradient));
    }
  }
}

TEST_CASE("The smoothed sum leaves infinite scores that are not among the largest alone, and NaN is NaN") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor scores = doubles({1, -inf, 2, 1, nan, 2, 1, -inf, -inf}, {3, 3}), noise = at::zeros({3, 2, 3});
  const at::Tensor sums = smoothed_topk_sum(scores, noise, 2, 0.5);
  CHECK(sums[0].item<double>() == 3);
  CHECK(std::isnan(sums[1].item<double>()));
  CHECK(sums[2].item<double>() == -inf);
  CHECK_THROWS_AS(smoothed_topk_sum(scores, noise, 4, 0.5), ShapeError);
  CHECK_THROWS_AS(smoothed_topk_sum(scores, at::zeros({3, 0, 3}), 2, 0.5), ShapeError);
}

TEST_CASE("Smoothed top-K refuses what does not fit") {
  const at::Tensor scores = at::zeros({2, 4});
  CHECK_THROWS_WITH(smoothed_topk(scores, at::zeros({2, 3, 5}), 1, 1.0),
                    Catch::Contains("noise") && Catch::Contains("[2, *, 4]"));
  CHECK_THROWS_WITH(smoothed_topk(scores, at::zeros({2, 0, 4}), 1, 1.0), Catch::Contains("[batch, 0, classes]"));
  CHECK_THROWS_WITH(smoothed_topk(scores, at::zeros({2, 3, 4}), 5, 1.0),
                    Catch::Contains("rank") && Catch::Contains("1 to 4"));
  CHECK_THROWS_AS(smoothed_topk(scores, at::zeros({2, 3, 4}), 0, 1.0), ShapeError);
}

}  // namespace
}  // namespace settrain
