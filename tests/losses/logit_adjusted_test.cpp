#include <ATen/ATen.h>

#include "src/core/error.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"

namespace settrain {
namespace {

using Catch::Contains;
using test::input_of;

const at::Tensor kThreeScores = at::tensor({1.0, 0.0, -0.5}, at::kDouble).view({1, 3});

double loss_at(const char* name, const std::vector<int64_t>& counts, int64_t label,
               const std::vector<std::string>& settings = {}) {
  const auto loss = test::build_loss(name, test::context_of_counts(counts), settings);
  return (*loss)(input_of(kThreeScores, at::tensor({label}))).sum.item<double>();
}

TEST_CASE("The scores are shifted by tau times the log frequencies") {
  // pi = 1/2, 1/3, 1/6.
  for (const double tau : {0.5, 1.0, 2.0}) {
    const double terms[] = {std::exp(1.0) * std::pow(1.0 / 2, tau), std::pow(1.0 / 3, tau),
                            std::exp(-0.5) * std::pow(1.0 / 6, tau)};
    for (const int64_t y : {0, 1, 2}) {
      CHECK(loss_at("logit_adjusted", {3, 2, 1}, y, {"tau=" + std::to_string(tau)}) ==
            Approx(-std::log(terms[y] / (terms[0] + terms[1] + terms[2]))).epsilon(1e-12));
    }
  }
}

TEST_CASE("The scale multiplies the scores but not what they are shifted by, and probabilities take it") {
  const double terms[] = {std::exp(4.0) / 2, 1.0 / 3, std::exp(-2.0) / 6};
  CHECK(loss_at("logit_adjusted", {3, 2, 1}, 2, {"scale=4"}) ==
        Approx(-std::log(terms[2] / (terms[0] + terms[1] + terms[2]))).epsilon(1e-12));
  CHECK(test::build_loss("logit_adjusted", test::context_of_counts({3, 2, 1}), {"scale=4"})->score_scale() == 4);
  CHECK(test::build_loss("balanced_softmax", test::context_of_counts({3, 2, 1}), {})->score_scale() == 1);
}

TEST_CASE("With tau 0, and for balanced classes, it is cross-entropy") {
  const double plain = loss_at("cross_entropy", {3, 2, 1}, 1);
  CHECK(loss_at("logit_adjusted", {3, 2, 1}, 1, {"tau=0"}) == plain);
  CHECK(loss_at("logit_adjusted", {7, 7, 7}, 1, {"tau=3"}) == Approx(plain).epsilon(1e-12));
}

TEST_CASE("Balanced softmax weights every class by its images") {
  const double total = 3 * std::exp(1.0) + 2 + std::exp(-0.5);
  CHECK(loss_at("balanced_softmax", {3, 2, 1}, 2) == Approx(-std::log(std::exp(-0.5) / total)).epsilon(1e-12));
  CHECK(loss_at("balanced_softmax", {3, 2, 1}, 2) == loss_at("logit_adjusted", {3, 2, 1}, 2, {"tau=1"}));
}

TEST_CASE("A class without training images takes no part") {
  const auto loss = test::build_loss("logit_adjusted", test::context_of_counts({4, 0, 4}));
  const at::Tensor gradient = test::gradient_of(
      [&](const at::Tensor& s) { return (*loss)(input_of(s, at::tensor({int64_t{0}}))).sum; }, kThreeScores);
  CHECK(gradient[0][1].item<double>() == 0);
  CHECK(gradient[0][2].item<double>() == Approx(1 / (1 + std::exp(1.5))).epsilon(1e-12));
  CHECK(loss_at("logit_adjusted", {4, 0, 4}, 1, {"tau=0"}) == loss_at("cross_entropy", {4, 0, 4}, 1));
}

TEST_CASE("A class without training images is no label, unless it counts as the rarest class") {
  for (const char* name : {"logit_adjusted", "balanced_softmax"}) {
    CHECK_THROWS_AS(loss_at(name, {4, 0, 3}, 1), ShapeError);
    CHECK_THROWS_WITH(loss_at(name, {4, 0, 3}, 1), Contains("labels[0]: class 1 has no training image"));
    CHECK(loss_at(name, {4, 0, 3}, 1, {"zero_count_class=rarest"}) == loss_at(name, {4, 3, 3}, 1));
    CHECK_THROWS_WITH(loss_at(name, {4, 0, 3}, 0, {"zero_count_class=error"}),
                      Contains("loss.zero_count_class") && Contains("class 1 has no training image"));
    CHECK(loss_at(name, {4, 1, 3}, 1, {"zero_count_class=error"}) == loss_at(name, {4, 1, 3}, 1));
  }
}

}  // namespace
}  // namespace settrain
