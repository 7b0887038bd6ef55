#include <ATen/ATen.h>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

TEST_CASE("LDAM is the cross-entropy of scaled cosines, with the label's margin taken off") {
  // Counts of 1 and 16: margins of 0.4 and 0.2.
  const auto loss = test::build_loss("ldam", test::context_of_counts({1, 16}), {"max_margin=0.4", "scale=10"});
  const at::Tensor scores = at::tensor({0.5, 0.3, 0.5, 0.3}, at::kDouble).view({2, 2});
  const at::Tensor got = (*loss)(test::input_of(scores, at::tensor({0, 1}, at::kLong))).per_sample;
  CHECK(got[0].item<double>() == Approx(std::log1p(std::exp(3.0 - 1.0))).epsilon(1e-12));
  CHECK(got[1].item<double>() == Approx(std::log1p(std::exp(5.0 - 1.0))).epsilon(1e-12));
  CHECK(loss->score_scale() == 10);
}

TEST_CASE("Without margins LDAM is scaled cross-entropy") {
  at::manual_seed(1);
  const at::Tensor scores = at::randn({5, 4}, at::kDouble), labels = at::tensor({0, 1, 2, 3, 0}, at::kLong);
  const auto ldam = test::build_loss("ldam", test::context_of(4), {"max_margin=0", "scale=7"});
  const auto cross_entropy = test::build_loss("cross_entropy", test::context_of(4));
  CHECK(test::near((*ldam)(test::input_of(scores, labels)).per_sample,
                   (*cross_entropy)(test::input_of(scores * 7, labels)).per_sample));
}

}  // namespace
}  // namespace settrain
