#include "losses/cross_entropy.h"

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/losses/build_loss.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

TEST_CASE("Cross-entropy of hand-computed scores", "[fast]") {
  const auto loss = test::build_loss("cross_entropy", test::context_of(3));
  const at::Tensor scores = at::tensor({0.0, std::log(2.0), 0.0, 0.0, 0.0, 0.0}, at::kDouble).view({2, 3});
  const at::Tensor labels = at::tensor({1, 2}, at::kLong);
  CHECK(test::near((*loss)(test::input_of(scores, labels)).per_sample,
                   at::tensor({std::log(2.0), std::log(3.0)}, at::kDouble)));
  const at::Tensor gradient =
      test::gradient_of([&](const at::Tensor& s) { return (*loss)(test::input_of(s, labels)).sum; }, scores);
  CHECK(test::near(gradient, at::tensor({0.25, -0.5, 0.25, 1 / 3.0, 1 / 3.0, -2 / 3.0}, at::kDouble).view({2, 3})));
  CHECK(loss->score_scale() == 1.0);
}

}  // namespace
}  // namespace settrain
