// The losses that the smoothed and the noised ones stand in for.
#include <ATen/ATen.h>

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "losses/ops/smoothed_topk.h"
#include "src/core/error.h"
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

// The smoothed hinges, with the settings of each.
std::vector<std::pair<std::string, std::vector<std::string>>> smoothed_hinges() {
  return {{"topk_hinge", {}}, {"topk_hinge_convex", {}}, {"topk_hinge_scaled", {"alpha=0.7"}}};
}

constexpr int64_t kSmoothedBatch = 7, kSmoothedClasses = 9;

std::unique_ptr<Loss> smoothed(const std::string& name, std::vector<std::string> settings, int64_t k, double epsilon,
                               int64_t draws) {
  settings.push_back("k=" + std::to_string(k));
  settings.push_back("smoothing.epsilon=" + std::to_string(epsilon));
  settings.push_back("smoothing.num_draws=" + std::to_string(draws));
  return test::build_loss(name, test::context_of(kSmoothedClasses), settings);
}

at::Tensor smoothed_scores(uint64_t seed) {
  at::manual_seed(seed);
  return at::randn({kSmoothedBatch, kSmoothedClasses}, at::kDouble);
}

at::Tensor smoothed_labels() {
  return at::arange(kSmoothedBatch, at::kLong);
}

TEST_CASE("A hinge's smoothing vanishes with epsilon, by no more than the largest noise") {
  for (const auto& [name, settings] : smoothed_hinges()) {
    for (const int64_t k : {1, 3, 8}) {
      CAPTURE(name, k);
      std::vector<std::string> plain = settings;
      plain.push_back("k=" + std::to_string(k));
      const auto hinge = test::build_loss(name, test::context_of(kSmoothedClasses), plain);
      const LossInput input = input_of(smoothed_scores(3), smoothed_labels());
      const at::Tensor exact = (*hinge)(input).per_sample;
      for (const double epsilon : {0.0001, 0.01, 1.0}) {
        const at::Tensor got = (*smoothed(name, settings, k, epsilon, 4))(input).per_sample;
        CHECK((got - exact).abs().max().item<double>() <= 6.34 * epsilon);
        CHECK((got - exact).abs().max().item<double>() > 1e-3 * epsilon);
      }
    }
  }
}

// [batch] the loss with the expectation of its ranks over the noise, without the hinge.
at::Tensor expected_excess(const std::string& name, const at::Tensor& scores, int64_t k, double epsilon) {
  std::vector<at::Tensor> values;
  for (int64_t i = 0; i < scores.size(0); ++i) {
    const double label = scores[i][i].item<double>();
    const auto rank = [&](const at::Tensor& row, int64_t r) {
      return exact_smoothed_topk(row.unsqueeze(0), r, epsilon, /*nodes=*/64);
    };
    if (name == "topk_hinge_convex") {
      at::Tensor raised = scores[i] + 1;
      raised[i] -= 1;
      at::Tensor sum = rank(raised, 1);
      for (int64_t r = 2; r <= k; ++r) sum = sum + rank(raised, r);
      values.push_back(sum / static_cast<double>(k) - label);
    } else {
      const at::Tensor others = at::cat({scores[i].slice(0, 0, i), scores[i].slice(0, i + 1)});
      const at::Tensor excess = rank(others, k) - label;
      values.push_back(name == "topk_hinge" ? excess + 1 : excess / static_cast<double>(k) + 0.7);
    }
  }
  return at::cat(values);
}

TEST_CASE("The mean over draws tends to the integral over the noise") {
  const int64_t steps = 20, draws = 1000;
  for (const auto& [name, settings] : smoothed_hinges()) {
    for (const int64_t k : {1, 4}) {
      CAPTURE(name, k);
      // Labels far below the rest, so that no hinge cuts a mean off.
      at::Tensor scores = smoothed_scores(4);
      for (int64_t i = 0; i < kSmoothedBatch; ++i) scores[i][i] = -4;
      at::Tensor sum = at::zeros({kSmoothedBatch}, at::kDouble);
      const auto loss = smoothed(name, settings, k, 0.8, draws);
      for (int64_t step = 0; step < steps; ++step) {
        LossInput input = input_of(scores.to(at::kFloat), smoothed_labels());
        input.noise_key.step = step;
        sum += (*loss)(input).per_sample.to(at::kDouble);
      }
      // The standard deviation of a draw is at most epsilon, up to rounding.
      const double factor = name == "topk_hinge_scaled" ? 1 / static_cast<double>(k) : 1;
      const double error = factor * 0.8 / std::sqrt(static_cast<double>(steps * draws));
      const at::Tensor difference = sum / static_cast<double>(steps) - expected_excess(name, scores, k, 0.8);
      CHECK(difference.abs().max().item<double>() < 5 * error);
      CHECK((sum / static_cast<double>(steps) - expected_excess(name, scores, k, 0.05)).abs().max().item<double>() >
            5 * error);
    }
  }
}

TEST_CASE("A smoothed hinge's gradient is that of differences with the same draws, and reaches several classes") {
  for (const auto& [name, settings] : smoothed_hinges()) {
    for (const int64_t k : {1, 3, 8}) {
      CAPTURE(name, k);
      const auto loss = smoothed(name, settings, k, 0.9, 6);
      const auto sum = [&](const at::Tensor& s) { return (*loss)(input_of(s, smoothed_labels())).sum; };
      CHECK(test::gradient_error(sum, smoothed_scores(5), 1e-5) < 1e-8);
      const at::Tensor gradient = test::gradient_of(sum, smoothed_scores(5));
      CHECK(gradient.sum(1).abs().max().item<double>() < 1e-12);
      CHECK(gradient.ne(0).sum(1).max().item<int64_t>() > (k == 8 ? 2 : 3));
    }
  }
}

TEST_CASE("A hinge is smoothed alike in float32 and float64, and given noise is taken") {
  at::manual_seed(6);
  const at::Tensor noise = at::randn({kSmoothedBatch, 6, kSmoothedClasses}, at::kDouble);
  for (const auto& [name, settings] : smoothed_hinges()) {
    CAPTURE(name);
    const auto loss = smoothed(name, settings, 3, 0.9, 6);
    const auto result = [&](at::ScalarType dtype, const at::Tensor& given) {
      const at::Tensor scores = smoothed_scores(5).to(at::kFloat).to(dtype).requires_grad_();
      const LossValue value = (*loss)(input_of(scores, smoothed_labels(), given));
      value.sum.backward();
      return std::pair(value.per_sample.detach(), scores.grad());
    };
    for (const bool is_given : {false, true}) {
      const auto got = result(at::kFloat, is_given ? noise : at::Tensor());
      const auto expected = result(at::kDouble, is_given ? noise : at::Tensor());
      CHECK(test::near(got.first, expected.first));
      CHECK(test::near(got.second, expected.second));
    }
    CHECK_FALSE(at::allclose(result(at::kDouble, noise).first, result(at::kDouble, 2 * noise).first));
    CHECK_THROWS_AS(result(at::kDouble, noise.slice(1, 0, 5)), ShapeError);
  }
}

TEST_CASE("Draws without smoothing are refused") {
  CHECK_THROWS_WITH(test::build_loss("topk_hinge", test::context_of(9), {"smoothing.num_draws=3"}),
                    Catch::Contains("loss.smoothing.num_draws") && Catch::Contains("loss.smoothing.epsilon"));
  CHECK_THROWS_WITH(test::build_loss("topk_hinge_calibrated", test::context_of(9), {"smoothing.epsilon=1"}),
                    Catch::Contains("smoothing"));
  CHECK_NOTHROW(test::build_loss("topk_hinge", test::context_of(9),
                                 {"smoothing.epsilon={from: 1, to: 0}", "smoothing.num_draws=3"}));
}

}  // namespace
}  // namespace settrain
