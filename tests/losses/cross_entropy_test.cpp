#include <ATen/ATen.h>

#include <cmath>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

TEST_CASE("Cross-entropy of hand-computed scores") {
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

TEST_CASE("Label smoothing is the cross-entropy with a smoothed target") {
  const auto loss = test::build_loss("cross_entropy", test::context_of(4), {"label_smoothing=0.2"});
  const at::Tensor scores = at::tensor({0.3, -1.0, 2.0, 0.5}, at::kDouble).view({1, 4});
  const at::Tensor target = at::tensor({0.05, 0.85, 0.05, 0.05}, at::kDouble);
  const auto sum = [&](const at::Tensor& s) { return (*loss)(test::input_of(s, at::tensor({int64_t{1}}))).sum; };
  CHECK(test::near(sum(scores), -(target * at::log_softmax(scores, 1)).sum()));
  CHECK(test::near(test::gradient_of(sum, scores), at::softmax(scores, 1) - target));
  CHECK_THROWS_WITH(test::build_loss("cross_entropy", test::context_of(4), {"label_smoothing=1"}),
                    Catch::Contains("loss.label_smoothing") && Catch::Contains("out of range"));
}

}  // namespace
}  // namespace settrain
