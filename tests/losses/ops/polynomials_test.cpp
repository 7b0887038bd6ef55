#include "losses/ops/polynomials.h"

#include <ATen/ATen.h>

#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

TEST_CASE("Elementary symmetric polynomials, by hand and by subsets") {
  const at::Tensor x = at::tensor({1.0, 2.0, 3.0, 5.0, 7.0}, at::kDouble);
  // sigma_0 .. sigma_3 of 1, 2, 3, 5, 7
  const at::Tensor expected = at::tensor({1.0, 18.0, 118.0, 348.0}, at::kDouble);
  CHECK(at::allclose(log_elementary_symmetric(x.log(), 3).exp(), expected, 1e-13, 0));
  CHECK(at::equal(elementary_symmetric(x, 3), expected));
  const at::Tensor p = at::tensor({0.5, 0.25, 0.1}, at::kDouble);
  const at::Tensor events = at::tensor({0.3375, 0.4875, 0.1625, 0.0125}, at::kDouble);
  CHECK(at::allclose(number_of_events(p, 1 - p, 3), events, 1e-13, 0));
}

TEST_CASE("Elementary symmetric polynomials have the polynomials of the other values for a gradient, zeros included") {
  const at::Tensor x = at::tensor({1.0, -2.0, 0.0, 0.5, 3.0}, at::kDouble);
  for (int64_t degree = 1; degree <= 5; ++degree) {
    CAPTURE(degree);
    const auto value = [&](const at::Tensor& e) { return elementary_symmetric(e, degree)[degree]; };
    const at::Tensor gradient = test::gradient_of(value, x);
    for (int64_t j = 0; j < 5; ++j) {
      const at::Tensor others = at::cat({x.slice(0, 0, j), x.slice(0, j + 1)});
      CHECK(gradient[j].item<double>() == Approx(elementary_symmetric(others, degree - 1)[degree - 1].item<double>()));
    }
  }
}

TEST_CASE("Elementary symmetric polynomials of any numbers of rows and classes") {
  at::manual_seed(4);
  for (const int64_t classes : {1, 2, 3, 7, 8, 9}) {
    CAPTURE(classes);
    const at::Tensor e = at::rand({2, 3, classes}, at::kDouble);
    const at::Tensor all = elementary_symmetric(e, classes);
    CHECK(all.sizes() == at::IntArrayRef({2, 3, classes + 1}));
    CHECK(test::near(all.sum(-1), (1 + e).prod(-1)));  // the polynomial at X = 1
    CHECK(test::near(all.select(-1, classes), e.prod(-1)));
    CHECK(test::near(log_elementary_symmetric(e.log(), classes).exp(), all));
  }
}

}  // namespace
}  // namespace settrain
