// Binary cross-entropies of single labels.
#include <ATen/ATen.h>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

using test::input_of;

const at::Tensor& binary_scores() {  // sigma is 1/2, 3/4, 1/5
  static const at::Tensor tensor = at::tensor({0.0, std::log(3.0), -std::log(4.0)}, at::kDouble).view({1, 3});
  return tensor;
}

double binary_value(const std::string& name, int64_t label, const std::vector<std::string>& settings = {}) {
  return (*test::build_loss(name, test::context_of(3), settings))(input_of(binary_scores(), at::tensor({label})))
      .sum.item<double>();
}

TEST_CASE("Binary cross-entropies by hand") {
  CHECK(binary_value("bce_positive", 1) == Approx(-std::log(0.75)).epsilon(1e-12));
  CHECK(binary_value("assume_negative", 1) ==
        Approx(-std::log(0.75) - (std::log(0.5) + std::log(0.8)) / 2).epsilon(1e-12));
  CHECK(binary_value("expected_positive_regularisation", 0, {"k=1", "beta=2"}) ==
        Approx(-std::log(0.5) + 2 * std::pow(0.5 + 0.75 + 0.2 - 1, 2)).epsilon(1e-12));
}

TEST_CASE("The number of expected positives is that of the whole batch") {
  const at::Tensor two = at::cat({binary_scores(), binary_scores() * -1});
  const auto loss = test::build_loss("expected_positive_regularisation", test::context_of(3), {"k=2", "beta=1"});
  const double got = (*loss)(input_of(two, at::tensor({0, 0}, at::kLong))).mean().item<double>();
  CHECK(got == Approx(-std::log(0.5) + std::pow((1.45 + 1.55) / 2 - 2, 2)).epsilon(1e-12));
}

}  // namespace
}  // namespace settrain
