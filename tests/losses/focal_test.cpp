#include <ATen/ATen.h>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"

namespace settrain {
namespace {

using test::input_of;

TEST_CASE("The focal loss is cross-entropy times (1 - p)^gamma") {
  const at::Tensor scores = at::tensor({std::log(3.0), 0.0}, at::kDouble).view({1, 2});  // p = 3/4 and 1/4
  for (const double gamma : {0.0, 0.5, 2.0}) {
    const auto loss = test::build_loss("focal", test::context_of_counts({1, 1}), {"gamma=" + std::to_string(gamma)});
    const double first = (*loss)(input_of(scores, at::tensor({int64_t{0}}))).sum.item<double>();
    const double second = (*loss)(input_of(scores, at::tensor({int64_t{1}}))).sum.item<double>();
    CHECK(first == Approx(std::pow(0.25, gamma) * -std::log(0.75)).epsilon(1e-12));
    CHECK(second == Approx(std::pow(0.75, gamma) * -std::log(0.25)).epsilon(1e-12));
  }
}

TEST_CASE("A sample whose softmax rounds to 1 has no gradient, for any gamma") {
  for (const char* gamma : {"gamma=0.0", "gamma=0.3", "gamma=2.0"}) {
    const auto loss = test::build_loss("focal", test::context_of_counts({1, 1, 1}), {gamma});
    for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
      const at::Tensor scores = at::tensor({2000.0, 0.0, -5.0}).view({1, 3}).to(dtype);
      const at::Tensor gradient = test::gradient_of(
          [&](const at::Tensor& s) { return (*loss)(input_of(s, at::tensor({int64_t{0}}))).sum; }, scores);
      CHECK(gradient.abs().max().item<double>() < 1e-12);
    }
  }
}

}  // namespace
}  // namespace settrain
