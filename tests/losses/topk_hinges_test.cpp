// The losses that the smoothed and the noised ones stand in for.
#include <ATen/ATen.h>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using test::input_of;

constexpr int64_t kHingeClasses = 5;

// Scores 3, 2, 1, 0.5, 0: the label 2 is the third best.
const at::Tensor& hinge_scores() {
  static const at::Tensor tensor = at::tensor({3.0, 2.0, 1.0, 0.5, 0.0}, at::kDouble).view({1, 5});
  return tensor;
}

double hinge_value(const std::string& name, int64_t k, int64_t label, const std::vector<std::string>& more = {}) {
  std::vector<std::string> settings = more;
  settings.push_back("k=" + std::to_string(k));
  return (*test::build_loss(name, test::context_of(kHingeClasses), settings))(
             input_of(hinge_scores(), at::tensor({label})))
      .sum.item<double>();
}

at::Tensor hinge_gradient(const std::string& name, int64_t k, int64_t label) {
  const auto loss = test::build_loss(name, test::context_of(kHingeClasses), {"k=" + std::to_string(k)});
  return test::gradient_of([&](const at::Tensor& s) { return (*loss)(input_of(s, at::tensor({label}))).sum; },
                           hinge_scores())[0];
}

TEST_CASE("The top-K hinges have the values of their formulas") {
  CHECK(hinge_value("topk_hinge", 1, 2) == Approx(1 + 3 - 1));
  CHECK(hinge_value("topk_hinge", 2, 2) == Approx(1 + 2 - 1));
  CHECK(hinge_value("topk_hinge", 3, 2) == Approx(1 + 0.5 - 1));
  CHECK(hinge_value("topk_hinge", 3, 0) == 0);
  CHECK(hinge_value("topk_hinge_calibrated", 2, 2) == Approx(1));
  CHECK(hinge_value("topk_hinge_calibrated", 3, 2) == Approx(1 + 0.5 - 1));
  CHECK(hinge_value("topk_hinge_convex", 2, 2) == Approx((4.0 + 3.0) / 2 - 1));
  CHECK(hinge_value("topk_hinge_convex", 2, 0) == Approx((3.0 + 3.0) / 2 - 3));
  CHECK(hinge_value("topk_hinge_scaled", 2, 2) == Approx(1 + (2.0 - 1.0) / 2));
  CHECK(hinge_value("topk_hinge_scaled", 2, 2, {"alpha=0.25"}) == Approx(0.25 + 0.5));
  CHECK(hinge_value("topk_zero_one", 2, 2) == 1);
  CHECK(hinge_value("topk_zero_one", 3, 2) == 0);
}

TEST_CASE("Their gradients touch the class of the rank and the label") {
  CHECK(at::equal(hinge_gradient("topk_hinge", 2, 2), at::tensor({0.0, 1.0, -1.0, 0.0, 0.0}, at::kDouble)));
  CHECK(at::equal(hinge_gradient("topk_hinge_calibrated", 3, 2), at::tensor({0.0, 0.0, -1.0, 1.0, 0.0}, at::kDouble)));
  CHECK(at::equal(hinge_gradient("topk_hinge_calibrated", 2, 2), at::zeros({5}, at::kDouble)));
  CHECK(at::equal(hinge_gradient("topk_hinge_convex", 2, 2), at::tensor({0.5, 0.5, -1.0, 0.0, 0.0}, at::kDouble)));
  CHECK(at::equal(hinge_gradient("topk_hinge_scaled", 2, 2), at::tensor({0.0, 0.5, -0.5, 0.0, 0.0}, at::kDouble)));
  CHECK(at::equal(hinge_gradient("topk_zero_one", 2, 2), at::zeros({5}, at::kDouble)));
}

TEST_CASE("A label that ties with the K-th largest score is no error") {
  const auto loss = test::build_loss("topk_zero_one", test::context_of(3), {"k=1"});
  const at::Tensor ties = at::tensor({1.0, 1.0, 0.0}, at::kDouble).view({1, 3});
  CHECK((*loss)(input_of(ties, at::tensor({int64_t{1}}))).sum.item<double>() == 0);
}

TEST_CASE("The calibrated hinge is the noised loss without noise") {
  at::manual_seed(2);
  const at::Tensor random = at::randn({7, 9}, at::kDouble), labels = at::arange(7);
  const auto hinge = test::build_loss("topk_hinge_calibrated", test::context_of(9), {"k=3"});
  for (const char* name : {"noised_topk", "exact_topk"}) {
    const auto other = test::build_loss(name, test::context_of(9), {"k=3", "epsilon=0"});
    CHECK(test::near((*hinge)(input_of(random, labels)).per_sample, (*other)(input_of(random, labels)).per_sample));
  }
}

}  // namespace
}  // namespace settrain
