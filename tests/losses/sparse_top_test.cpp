// The projection on the top-K simplex, its Jacobian, and the loss.
#include <ATen/ATen.h>

#include "losses/ops/sparse_top_projection.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using Catch::Contains;

at::Tensor one_row(std::initializer_list<double> values) {
  return at::tensor(values, at::kDouble).view({1, -1});
}

at::Tensor project(const at::Tensor& scores, int64_t k) {
  return sparse_top_projection(scores, at::full({scores.size(0)}, k, at::kLong));
}

at::Tensor spread_scores(int64_t batch, int64_t classes, double spread) {
  at::manual_seed(6);
  return at::randn({batch, classes}, at::kDouble) * spread;
}

TEST_CASE("projections by hand") {
  // k = 1, lambda = 0.5: sparsemax.
  CHECK(test::near(project(one_row({1.2, 0.8, -3}), 1), one_row({0.7, 0.3, 0})));
  // k = 2: one class at 1, two share the other unit.
  CHECK(test::near(project(one_row({5, 1.1, 0.9, -2}), 2), one_row({1, 0.6, 0.4, 0})));
  CHECK(test::near(project(one_row({1, 1, 1, 1}), 3), one_row({0.75, 0.75, 0.75, 0.75})));  // ties
  CHECK(test::near(project(one_row({0, -7, 4}), 3), one_row({1, 1, 1})));
  CHECK(test::near(project(one_row({0, -7, 4}), 0), one_row({0, 0, 0})));
  CHECK(test::near(project(one_row({3, 2, 1, 0}), 2), one_row({1, 1, 0, 0})));  // no class in between
}

TEST_CASE("the projection is the nearest point of the simplex") {
  // Optimality: q is in the simplex, and moving weight from a class with some to one with room brings no gain.
  for (const double spread : {0.1, 1.0, 30.0}) {
    for (const int64_t k : {1, 2, 7, 12, 39, 40}) {
      CAPTURE(spread, k);
      const at::Tensor s = spread_scores(8, 40, spread), q = project(s, k);
      CHECK((q.ge(0).logical_and(q.le(1))).all().item<bool>());
      CHECK(test::near(q.sum(1), at::full({8}, static_cast<double>(k), at::kDouble)));
      const double inf = std::numeric_limits<double>::infinity();
      const at::Tensor gain = s - q;
      const at::Tensor best_to_raise = gain.masked_fill(q.ge(1), -inf).amax(1);
      const at::Tensor best_to_lower = gain.masked_fill(q.le(0), inf).amin(1);
      CHECK((best_to_raise - best_to_lower).max().item<double>() < 1e-12 * std::max(1.0, spread));
    }
  }
}

TEST_CASE("large scores and shifts cost no digits") {
  const at::Tensor s = at::round(spread_scores(5, 20, 4) * 256) / 256;  // exact after the shift
  CHECK(test::near(project(s + 1e6, 4), project(s, 4)));
  const at::Tensor q = project((s * 1e4).to(at::kFloat), 4);
  CHECK(q.scalar_type() == at::kFloat);
  CHECK(test::near(q.sum(1), at::full({5}, 4.0)));
}

TEST_CASE("autograd, central differences and the Jacobian agree") {
  const at::Tensor s = spread_scores(3, 9, 0.6), k = at::tensor({1, 3, 8}, at::kLong);
  const at::Tensor q = sparse_top_projection(s, k), jacobian = sparse_top_jacobian(q);
  at::manual_seed(8);
  const at::Tensor v = at::randn({3, 9}, at::kDouble);
  const auto product = [&](const at::Tensor& point) { return (sparse_top_projection(point, k) * v).sum(); };
  CHECK(test::gradient_error(product, s, 1e-6) < 1e-8);
  CHECK(test::near(test::gradient_of(product, s), at::matmul(jacobian, v.unsqueeze(2)).squeeze(2)));
  CHECK(test::near(jacobian, jacobian.transpose(1, 2)));
  CHECK(test::near(jacobian.sum(2), at::zeros({3, 9}, at::kDouble)));  // the sum stays k
  CHECK(jacobian.abs().sum().item<double>() > 1);
  CHECK(sparse_top_jacobian(one_row({1, 1, 0, 0})).abs().max().item<double>() == 0);
}

TEST_CASE("shapes and k are checked") {
  CHECK_THROWS_WITH(project(at::zeros({3}), 1), Contains("scores") && Contains("[*, *]") && Contains("[3]"));
  CHECK_THROWS_WITH(project(one_row({1, 2}), 3), Contains("k:") && Contains("0 to 2"));
  CHECK_THROWS_WITH(sparse_top_projection(one_row({1, 2}), at::zeros({2}, at::kLong)),
                    Contains("k:") && Contains("[1]") && Contains("[2]"));
  CHECK_THROWS_WITH(sparse_top_projection(one_row({1, 2}), at::zeros({1})),
                    Contains("k:") && Contains("int64") && Contains("Float"));
}

LossInput with_sets(const at::Tensor& scores) {
  LossInput input = test::input_of(scores, at::tensor({0, 3, 1}, at::kLong));
  input.label_sets = {at::tensor({0, 2, 3, 6}, at::kLong), at::tensor({0, 4, 3, 1, 2, 5}, at::kLong)};
  return input;
}

TEST_CASE("the loss is convex, at least 0, and 0 where the labels lead by 1") {
  const auto loss = test::build_loss("sparse_top", test::context_of(6));
  const at::Tensor a = spread_scores(3, 6, 2), b = spread_scores(6, 6, 2).slice(0, 3);
  const auto value = [&](const at::Tensor& s) { return (*loss)(with_sets(s)).per_sample; };
  CHECK(value(a).ge(0).all().item<bool>());
  CHECK((value((a + b) / 2) - (value(a) + value(b)) / 2).max().item<double>() <= 1e-12);
  CHECK((value((a + b) / 2) - (value(a) + value(b)) / 2).min().item<double>() < -0.01);
  const at::Tensor indicator = label_indicator(with_sets(a).label_sets, {}, a);
  CHECK(test::near(value(indicator), at::zeros({3}, at::kDouble)));
  CHECK(value(indicator * 0.9).gt(1e-3).all().item<bool>());
}

TEST_CASE("one label is the sparsemax loss, whose gradient is the projection minus the label") {
  const auto loss = test::build_loss("sparse_top", test::context_of(6));
  const at::Tensor s = spread_scores(3, 6, 1), labels = at::tensor({0, 3, 1}, at::kLong);
  const auto sum = [&](const at::Tensor& point) { return (*loss)(test::input_of(point, labels)).sum; };
  const at::Tensor q = project(s, 1), label = at::one_hot(labels, 6).to(at::kDouble);
  CHECK(test::near(test::gradient_of(sum, s), q - label));
  // Eq. 6.12, as it is printed.
  const at::Tensor tau = (s - q).masked_fill(q.le(0), 0).sum(1) / q.gt(0).sum(1);
  const at::Tensor printed =
      -(s * label).sum(1) + 0.5 * ((s.square() - tau.unsqueeze(1).square()) * q.gt(0)).sum(1) + 0.5;
  CHECK(test::near((*loss)(test::input_of(s, labels)).per_sample, printed));
}

}  // namespace
}  // namespace settrain
