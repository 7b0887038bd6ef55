#include <ATen/ATen.h>

#include "losses/ops/smoothed_topk.h"
#include "src/core/error.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"

namespace settrain {
namespace {

double phi(double x) {
  return std::exp(-x * x / 2) / std::sqrt(2 * M_PI);
}

double ndtr(double x) {
  return std::erfc(-x / std::sqrt(2.0)) / 2;
}

TEST_CASE("Gauss-Legendre is exact for polynomials up to degree 2 n - 1") {
  for (const int64_t n : {1, 2, 5, 32, 64}) {
    const GaussLegendre rule(n);
    double of_one = 0, of_power = 0;
    for (size_t i = 0; i < rule.nodes.size(); ++i) {
      of_one += rule.weights[i];
      of_power += rule.weights[i] * std::pow(rule.nodes[i], 2 * n - 2);
    }
    CHECK(of_one == Approx(2).epsilon(1e-14));
    CHECK(of_power == Approx(2.0 / static_cast<double>(2 * n - 1)).epsilon(1e-12));
  }
}

TEST_CASE("Of two classes, the larger's expectation has a closed form") {
  for (const double epsilon : {1e-3, 0.5, 30.0}) {
    const double a = 0.7, b = 0.4, scale = epsilon * std::sqrt(2.0), d = (a - b) / scale;
    const double expected = a * ndtr(d) + b * ndtr(-d) + scale * phi(d);
    const at::Tensor scores = at::tensor({a, b}, at::kDouble).view({1, 2}).requires_grad_();
    const at::Tensor value = exact_smoothed_topk(scores, 1, epsilon, 64);
    CHECK(value.item<double>() == Approx(expected).epsilon(1e-12));
    value.sum().backward();
    CHECK(scores.grad()[0][0].item<double>() == Approx(ndtr(d)).epsilon(1e-11));
    CHECK(exact_smoothed_topk(at::tensor({a, b}, at::kDouble).view({1, 2}), 2, epsilon, 64).item<double>() ==
          Approx(a + b - expected).epsilon(1e-11));
  }
}

TEST_CASE("All ranks together are the sum of the scores, and gradients sum to 1") {
  at::manual_seed(1);
  const at::Tensor scores = at::randn({4, 7}, at::kDouble).requires_grad_();
  at::Tensor sum = at::zeros({4}, at::kDouble);
  for (int64_t rank = 1; rank <= 7; ++rank) {
    const at::Tensor value = exact_smoothed_topk(scores, rank, 0.4, 64);
    sum = sum + value.detach();
    scores.mutable_grad() = at::Tensor();
    value.sum().backward();
    CHECK(at::allclose(scores.grad().sum(1), at::ones({4}, at::kDouble), 0, 1e-11));
    CHECK(scores.grad().ge(-1e-12).all().item<bool>());
  }
  CHECK(at::allclose(sum, scores.detach().sum(1), 0, 1e-11));
}

TEST_CASE("The gradient is that of central differences, and ties are nothing special") {
  at::manual_seed(1);
  for (const at::Tensor& scores : {at::randn({3, 9}, at::kDouble), at::zeros({1, 9}, at::kDouble)}) {
    const auto sum = [](const at::Tensor& s) { return exact_smoothed_topk(s, 3, 0.3, 64).sum(); };
    CHECK(test::gradient_error(sum, scores, 1e-3) < 1e-9);
  }
}

TEST_CASE("The sampled operator's mean over many draws is the exact one, within four standard errors") {
  at::manual_seed(3);
  constexpr int64_t kDraws = 40000;
  const at::Tensor scores = at::randn({1, 30}, at::kDouble);
  for (const double epsilon : {0.1, 1.0}) {
    const at::Tensor noise = at::randn({1, kDraws, 30}, at::kDouble);
    const at::Tensor perturbed = std::get<0>((scores.unsqueeze(1) + epsilon * noise).sort(2, /*descending=*/true));
    const at::Tensor draws = perturbed.select(2, 5);
    const double error = draws.std().item<double>() / std::sqrt(static_cast<double>(kDraws));
    const double sampled = smoothed_topk(scores, noise, 6, epsilon).values.item<double>();
    CHECK(std::abs(sampled - exact_smoothed_topk(scores, 6, epsilon, 64).item<double>()) < 4 * error);
  }
}

TEST_CASE("The sum of the K largest, smoothed, is within epsilon K sqrt(2 ln L) of the sum itself") {
  // ICML 2022, appendix B.2, within the proof of proposition 3.5.
  at::manual_seed(5);
  const at::Tensor scores = at::randn({5, 20}, at::kDouble);
  const at::Tensor sorted = std::get<0>(scores.sort(1, true));
  for (const double epsilon : {0.05, 0.5, 5.0}) {
    at::Tensor smoothed = at::zeros({5}, at::kDouble);
    for (int64_t k = 1; k <= 6; ++k) {
      smoothed = smoothed + exact_smoothed_topk(scores, k, epsilon, 64);
      const at::Tensor distance = (smoothed - sorted.slice(1, 0, k).sum(1)).abs();
      CHECK(distance.max().item<double>() <= epsilon * static_cast<double>(k) * std::sqrt(2 * std::log(20.0)));
    }
  }
}

TEST_CASE("Float32 scores of 10,000 and 32 nodes are right to float32") {
  at::manual_seed(1);
  const at::Tensor scores = (at::randn({2, 1000}) * 1e4);
  const at::Tensor fine = exact_smoothed_topk(scores.to(at::kDouble), 6, 0.2, 128);
  CHECK(at::allclose(exact_smoothed_topk(scores, 6, 0.2, 32).to(at::kDouble), fine, 1e-6, 0));
  const at::Tensor near = at::randn({2, 1000});
  CHECK(at::allclose(exact_smoothed_topk(near, 6, 0.2, 32).to(at::kDouble),
                     exact_smoothed_topk(near.to(at::kDouble), 6, 0.2, 128), 1e-6, 0));
}

TEST_CASE("An epsilon far below the rounding of the scores gives the rank itself, and the gradient sums to 1") {
  at::manual_seed(1);
  const at::Tensor scores = at::randn({4, 9}, at::kDouble), ties = at::zeros({1, 9}, at::kDouble);
  for (const double epsilon : {1e-6, 1e-12, 1e-100}) {
    for (const double size : {1.0, 1e4}) {
      const at::Tensor at_size = (at::cat({scores, ties}) + 1) * size;
      const auto sum = [&](const at::Tensor& s) { return exact_smoothed_topk(s, 3, epsilon, 64).sum(); };
      const at::Tensor gradient = test::gradient_of(sum, at_size);
      CHECK(at::allclose(gradient.sum(1), at::ones({5}, at::kDouble), 0, 1e-11));
      CHECK(at::allclose(gradient[4], at::full({9}, 1.0 / 9, at::kDouble), 0, 1e-11));
      const at::Tensor rank = std::get<0>(at_size.sort(1, /*descending=*/true)).select(1, 2);
      CHECK(at::allclose(exact_smoothed_topk(at_size, 3, epsilon, 64), rank, 1e-15, 2 * epsilon));
    }
  }
}

TEST_CASE("Without noise it is the rank itself, of ties the lower class") {
  const at::Tensor scores = at::tensor({2.0, 1.0, 2.0, 0.0}, at::kDouble).view({1, 4});
  const auto sum = [](const at::Tensor& s) { return exact_smoothed_topk(s, 2, 0, 48).sum(); };
  CHECK(sum(scores).item<double>() == 2);
  CHECK(at::equal(test::gradient_of(sum, scores), at::tensor({0.0, 0.0, 1.0, 0.0}, at::kDouble).view({1, 4})));
}

TEST_CASE("A rank that is not there is refused") {
  CHECK_THROWS_AS(exact_smoothed_topk(at::zeros({1, 3}), 4, 0.1, 32), ShapeError);
  CHECK_THROWS_AS(exact_smoothed_topk(at::zeros({3}), 1, 0.1, 32), ShapeError);
}

}  // namespace
}  // namespace settrain
