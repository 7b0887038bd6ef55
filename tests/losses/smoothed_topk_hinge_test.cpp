#include <ATen/ATen.h>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using test::input_of;

at::Tensor value_of(const std::vector<std::string>& settings, const at::Tensor& scores, const at::Tensor& labels) {
  return (*test::build_loss("smoothed_topk_hinge", test::context_of(scores.size(1)), settings))(
             input_of(scores, labels))
      .per_sample;
}

at::Tensor gradient_of(const std::vector<std::string>& settings, const at::Tensor& scores, const at::Tensor& labels) {
  const auto loss = test::build_loss("smoothed_topk_hinge", test::context_of(scores.size(1)), settings);
  return test::gradient_of([&](const at::Tensor& s) { return (*loss)(input_of(s, labels)).sum; }, scores);
}

TEST_CASE("k = 1, alpha = 0, tau = 1 is cross-entropy") {
  at::manual_seed(1);
  const at::Tensor scores = at::randn({6, 10}, at::kDouble), labels = at::arange(6);
  const auto cross_entropy = test::build_loss("cross_entropy", test::context_of(10));
  CHECK(test::near(value_of({"k=1", "alpha=0", "tau=1"}, scores, labels),
                   (*cross_entropy)(input_of(scores, labels)).per_sample));
}

TEST_CASE("For a small tau it is the hinge on scores over K") {
  at::manual_seed(1);
  const at::Tensor scores = at::randn({20, 12}, at::kDouble), labels = at::arange(20).remainder(12);
  for (const char* k : {"k=1", "k=3", "k=11"}) {
    const auto hinge = test::build_loss("topk_hinge_scaled", test::context_of(12), {k});
    const at::Tensor hard = (*hinge)(input_of(scores, labels)).per_sample;
    CHECK(at::allclose(value_of({k, "tau=1e-5"}, scores, labels), hard, 0, 1e-4));
  }
}

TEST_CASE("Right in float32 at tau = 1e-4, k = 20, 10,000 classes and scores of 10,000") {
  at::manual_seed(1);
  const at::Tensor spread = at::randn({2, 10000}, at::kDouble), labels = at::tensor({3, 4}, at::kLong);
  for (const double size : {1.0, 1e4}) {
    const at::Tensor scores = (spread * size).to(at::kFloat);
    const std::vector<std::string> settings{"k=20", "tau=1e-4"};
    const at::Tensor got = value_of(settings, scores, labels);
    // So far from ties the smooth loss is the hard one, to tau log(number of near ties).
    const auto hinge = test::build_loss("topk_hinge_scaled", test::context_of(10000), {"k=20"});
    CHECK(at::allclose(got, (*hinge)(input_of(scores, labels)).per_sample, 1e-6, 5e-4));
    const at::Tensor gradient = gradient_of(settings, scores, labels);
    CHECK(at::isfinite(gradient).all().item<bool>());
    CHECK(gradient.sum(1).abs().max().item<double>() < 1e-6);
    CHECK(gradient.gather(1, labels.unsqueeze(1)).add(1.0 / 20).abs().max().item<double>() < 1e-6);
  }
}

TEST_CASE("The gradient keeps its accuracy where scores are close together") {
  at::manual_seed(4);
  const at::Tensor scores = at::randn({3, 40}, at::kDouble) * 1e-3, labels = at::tensor({0, 1, 2}, at::kLong);
  for (const char* tau : {"tau=1", "tau=0.01"}) {
    const auto loss = test::build_loss("smoothed_topk_hinge", test::context_of(40), {"k=5", tau});
    CHECK(test::gradient_error([&](const at::Tensor& s) { return (*loss)(input_of(s, labels)).sum; }, scores, 1e-4) <
          1e-8);
  }
}

TEST_CASE("With the reference's threshold, well separated samples take the hard hinge") {
  const at::Tensor scores = at::tensor({5.0, 4.0, 0.0, -1.0, 0.2, 0.1, 0.0, -0.1}, at::kDouble).view({2, 4});
  const at::Tensor labels = at::tensor({2, 2}, at::kLong);
  const at::Tensor switched = value_of({"k=2", "tau=0.1", "reference_threshold=1000"}, scores, labels);
  const at::Tensor smooth = value_of({"k=2", "tau=0.1"}, scores, labels);
  CHECK(switched[0].item<double>() == Approx(1 + (4.0 - 0.0) / 2).epsilon(1e-12));
  CHECK(smooth[0].item<double>() != Approx(3).epsilon(1e-12));
  CHECK(at::equal(switched[1], smooth[1]));
}

}  // namespace
}  // namespace settrain
