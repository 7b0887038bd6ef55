// Propositions of Berrada et al., ICLR 2018, on their smoothed hinge L_k,tau: its limit, the hinge l_k on scores over
// k; it bounds the top-k error Lambda_k, but not l_k.
#include <ATen/ATen.h>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr int64_t kIclrBatch = 60, kIclrClasses = 10;

at::Tensor iclr_value(const std::string& name, const at::Tensor& scores, const at::Tensor& labels, int64_t k,
                      double tau = 0) {
  std::vector<std::string> settings{"k=" + std::to_string(k)};
  if (tau > 0) settings.push_back("tau=" + std::to_string(tau));
  return (*test::build_loss(name, test::context_of(scores.size(1)), settings))(test::input_of(scores, labels))
      .per_sample;
}

// Close together, as far apart as the margin, and farther.
at::Tensor iclr_scores(int64_t k) {
  at::manual_seed(61);
  const at::Tensor sizes = at::tensor({0.03, 1.0, 30.0}, at::kDouble).repeat({kIclrBatch / 3}).unsqueeze(1);
  return static_cast<double>(k) * sizes * at::randn({kIclrBatch, kIclrClasses}, at::kDouble);
}

const at::Tensor& iclr_labels() {
  static const at::Tensor tensor = at::arange(kIclrBatch, at::kLong).remainder(kIclrClasses);
  return tensor;
}

double log_binomial(int64_t n, int64_t k) {
  const auto factorial = [](int64_t m) { return std::lgamma(static_cast<double>(m + 1)); };
  return factorial(n) - factorial(k) - factorial(n - k);
}

TEST_CASE("Proposition 2: for tau -> 0 it tends to the hinge, within tau log(number of sets)") {
  for (const int64_t k : {1, 2, 5, 9}) {
    const at::Tensor hinge = iclr_value("topk_hinge_scaled", iclr_scores(k), iclr_labels(), k);
    for (const double tau : {1.0, 0.1, 0.01, 0.001, 1e-5}) {
      CAPTURE(k, tau);
      const at::Tensor distance =
          (iclr_value("smoothed_topk_hinge", iclr_scores(k), iclr_labels(), k, tau) - hinge).abs();
      CHECK(distance.max().item<double>() <= tau * log_binomial(kIclrClasses, k) + 1e-12);
    }
  }
}

TEST_CASE("Proposition 3: it bounds the hinge from above for k = 1") {
  const at::Tensor hinge = iclr_value("topk_hinge_scaled", iclr_scores(1), iclr_labels(), 1);
  for (const double tau : {10.0, 1.0, 0.1, 0.01}) {
    CHECK(
        iclr_value("smoothed_topk_hinge", iclr_scores(1), iclr_labels(), 1, tau).ge(hinge - 1e-12).all().item<bool>());
  }
}

TEST_CASE("Proposition 3: its proof's example lies below the hinge for k >= 2, by the formula given") {
  const at::Tensor label = at::tensor({int64_t{0}});
  for (const int64_t k : {2, 3, 6}) {
    for (const double tau : {1.0, 0.1, 0.01}) {
      CAPTURE(k, tau);
      const auto of_k = static_cast<double>(k);
      const double alpha = 0.5, beta = 2.0, x = 1 + (beta - alpha) / of_k;
      at::Tensor scores = at::full({1, kIclrClasses}, -1e5, at::kDouble);
      scores[0][0] = alpha;
      scores[0].slice(0, 1, k + 1).fill_(beta);
      const at::Tensor smoothed = iclr_value("smoothed_topk_hinge", scores, label, k, tau);
      CHECK(smoothed.item<double>() == Approx(tau * std::log1p(std::exp(x / tau) / of_k)).epsilon(1e-12));
      CHECK(iclr_value("topk_hinge_scaled", scores, label, k).item<double>() == Approx(x).epsilon(1e-12));
      CHECK(smoothed.item<double>() < x);
    }
  }
}

TEST_CASE("Proposition 4: it is at least 1 - tau log(k) at every top-k error") {
  for (const int64_t k : {1, 2, 5, 9}) {
    const at::Tensor scores = iclr_scores(k), error = iclr_value("topk_zero_one", scores, iclr_labels(), k);
    CHECK(error.sum().item<double>() > 0);
    for (const double tau : {0.01, 0.1, 0.4, 1.0, 3.0}) {
      CAPTURE(k, tau);
      const double bound = 1 - tau * std::log(static_cast<double>(k));
      CHECK(iclr_value("smoothed_topk_hinge", scores, iclr_labels(), k, tau)
                .ge(bound * error - 1e-12)
                .all()
                .item<bool>());
    }
    // It is tight: for k + 1 classes, of which the label's is the lowest by a hair.
    at::Tensor close = at::zeros({1, k + 1}, at::kDouble);
    close[0][0] = -1e-9;
    const double tau = 0.02, bound = 1 - tau * std::log(static_cast<double>(k));
    CHECK(iclr_value("smoothed_topk_hinge", close, at::tensor({int64_t{0}}), k, tau).item<double>() ==
          Approx(bound).epsilon(1e-8));
  }
}

}  // namespace
}  // namespace settrain
