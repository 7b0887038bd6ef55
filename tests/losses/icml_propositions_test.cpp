// Propositions of Garcin et al., ICML 2022, on their smoothed operators and losses. The appendix' proofs tell which
// statements are of the sum of the K largest (proposition 3.3) and which of the K-th largest (3.5).
#include <ATen/ATen.h>

#include "losses/ops/smoothed_topk.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"

namespace settrain {
namespace {

constexpr int64_t kIcmlClasses = 12;
const double kRootTwoLogL = std::sqrt(2 * std::log(static_cast<double>(kIcmlClasses)));

at::Tensor kth(const at::Tensor& scores, int64_t k, double epsilon) {
  return exact_smoothed_topk(scores, k, epsilon, 96);
}

at::Tensor sum_of_largest(const at::Tensor& scores, int64_t k, double epsilon) {
  at::Tensor sum = at::zeros({scores.size(0)}, at::kDouble);
  for (int64_t rank = 1; rank <= k; ++rank) sum = sum + kth(scores, rank, epsilon);
  return sum;
}

// Rows far apart, close together, and equal.
at::Tensor some_rows(uint64_t seed) {
  at::manual_seed(seed);
  return at::cat({3 * at::randn({6, kIcmlClasses}, at::kDouble), 0.1 * at::randn({6, kIcmlClasses}, at::kDouble),
                  at::zeros({1, kIcmlClasses}, at::kDouble)});
}

template <class Function>
at::Tensor icml_gradient(const Function& f, const at::Tensor& scores, int64_t k, double epsilon) {
  return test::gradient_of([&](const at::Tensor& s) { return f(s, k, epsilon).sum(); }, scores);
}

TEST_CASE("Proposition 3.3: the smoothed sum is convex, and it and its icml_gradient are Lipschitz") {
  const at::Tensor a = some_rows(51), b = some_rows(52), distance = (a - b).norm(2, {1});
  for (const int64_t k : {1, 4, 11}) {
    for (const double epsilon : {0.1, 2.0}) {
      CAPTURE(k, epsilon);
      const at::Tensor at_a = sum_of_largest(a, k, epsilon), at_b = sum_of_largest(b, k, epsilon);
      const at::Tensor below_chord = (at_a + at_b) / 2 - sum_of_largest((a + b) / 2, k, epsilon);
      CHECK(below_chord.min().item<double>() > -1e-10);  // not strict: it is linear along (1, ..., 1)
      CHECK(below_chord.max().item<double>() > 0.1);
      CHECK((at_a - at_b).abs().le(std::sqrt(k) * distance).all().item<bool>());
      const at::Tensor change =
          icml_gradient(sum_of_largest, a, k, epsilon) - icml_gradient(sum_of_largest, b, k, epsilon);
      CHECK(change.norm(2, {1}).le(std::sqrt(k * kIcmlClasses) / epsilon * distance).all().item<bool>());
    }
  }
}

TEST_CASE("Proposition 3.5: the smoothed K-th is within epsilon K sqrt(2 ln L) of it, and smooth") {
  const at::Tensor a = some_rows(53), b = a + 0.05 * some_rows(54), distance = (a - b).norm(2, {1});
  const at::Tensor sorted = std::get<0>(a.sort(1, /*descending=*/true));
  for (const int64_t k : {1, 2, 4, 12}) {
    for (const double epsilon : {1e-6, 0.1, 2.0, 100.0}) {
      CAPTURE(k, epsilon);
      const at::Tensor difference = kth(a, k, epsilon) - sorted.select(1, k - 1);
      const auto of_k = static_cast<double>(k);
      CHECK(difference.max().item<double>() <= epsilon * of_k * kRootTwoLogL);  // the proof's, of which (22) is half
      CHECK(difference.min().item<double>() >= -epsilon * (of_k - 1) * kRootTwoLogL - 1e-9 * epsilon);
      const at::Tensor change = icml_gradient(kth, a, k, epsilon) - icml_gradient(kth, b, k, epsilon);
      CHECK(change.norm(2, {1}).le(4 * std::sqrt(k * kIcmlClasses) / epsilon * distance).all().item<bool>());
    }
  }
}

TEST_CASE("The smoothed losses are as close to the calibrated hinge as proposition 3.5 says") {
  const at::Tensor scores = some_rows(55), labels = at::arange(13, at::kLong).remainder(kIcmlClasses);
  at::manual_seed(56);
  const at::Tensor noise = at::randn({13, 3, kIcmlClasses});
  for (const int64_t k : {1, 4, 11}) {
    const std::string of_k = "k=" + std::to_string(k);
    const auto value = [&](const std::string& name, const std::vector<std::string>& settings, const at::Tensor& z) {
      return (*test::build_loss(name, test::context_of(kIcmlClasses), settings))(test::input_of(scores, labels, z))
          .per_sample;
    };
    const at::Tensor hinge = value("topk_hinge_calibrated", {of_k}, {});
    for (const char* epsilon : {"0", "1e-8", "0.1", "2"}) {
      CAPTURE(k, epsilon);
      const double size = std::stod(epsilon), rounding = 1e-14;
      const std::vector<std::string> settings{of_k, std::string("epsilon=") + epsilon};
      const double exact = (value("exact_topk", settings, {}) - hinge).abs().max().item<double>();
      CHECK(exact <= size * static_cast<double>(k + 1) * kRootTwoLogL + rounding);
      // For given noise a rank moves by no more than the largest perturbation.
      const at::Tensor of_noise = value("noised_topk", {of_k, settings[1], "num_draws=3"}, noise) - hinge;
      CHECK(of_noise.abs().le(size * noise.abs().amax({1, 2}) + rounding).all().item<bool>());
    }
  }
}

TEST_CASE("A icml_gradient of M draws: 1/M for each class drawn, -1 for the label, at most M + 1 entries") {
  at::manual_seed(57);
  const at::Tensor scores = 0.1 * at::randn({50, kIcmlClasses}, at::kDouble);
  const at::Tensor labels = at::arange(50, at::kLong).remainder(kIcmlClasses);
  for (const int64_t draws : {1, 2, 3, 7}) {
    const auto loss = test::build_loss("noised_topk", test::context_of(kIcmlClasses),
                                       {"k=4", "epsilon=1", "margin=9", "num_draws=" + std::to_string(draws)});
    const at::Tensor got =
        test::gradient_of([&](const at::Tensor& s) { return (*loss)(test::input_of(s, labels)).sum; }, scores);
    const at::Tensor entries = got.ne(0).sum(1);
    CHECK(entries.max().item<int64_t>() <= draws + 1);
    CHECK(entries.max().item<int64_t>() >= std::min<int64_t>(draws + 1, 5));
    const at::Tensor times = static_cast<double>(draws) * (got + at::one_hot(labels, kIcmlClasses));
    CHECK(at::allclose(times, times.round(), 0, 1e-12));
    CHECK(times.min().item<double>() > -1e-12);
    CHECK(at::allclose(times.sum(1), at::full({50}, draws, at::kDouble)));
  }
}

}  // namespace
}  // namespace settrain
