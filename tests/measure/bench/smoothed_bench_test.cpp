#include "src/measure/bench/smoothed_bench.h"

#include <ATen/ATen.h>

#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

struct Answer {
  at::Tensor losses, gradient;
};

at::Tensor some_scores(int64_t batch, int64_t classes, double sd) {
  at::manual_seed(7);
  return at::randn({batch, classes}, at::kDouble) * sd;
}

at::Tensor some_labels(int64_t batch, int64_t classes) {
  return at::arange(batch, at::kLong) * 3 % classes;
}

template <class Loss>
Answer answer(const at::Tensor& scores, const Loss& loss) {
  const at::Tensor leaf = scores.clone().requires_grad_();
  const at::Tensor losses = loss(leaf);
  if (losses.requires_grad()) losses.sum().backward();
  return {losses.detach(), leaf.grad()};
}

Answer ours(const at::Tensor& scores, const at::Tensor& labels, int64_t k, double tau) {
  const auto loss = test::build_loss("smoothed_topk_hinge", test::context_of(scores.size(1)),
                                     {"k=" + std::to_string(k), "tau=" + std::to_string(tau), "alpha=1"});
  return answer(scores, [&](const at::Tensor& leaf) { return (*loss)(test::input_of(leaf, labels)).per_sample; });
}

TEST_CASE("elementary symmetric polynomials of small numbers") {
  const at::Tensor e = at::tensor({1.0, 2.0, 3.0}, at::kDouble).unsqueeze(0);
  const at::Tensor expected = at::tensor({1.0, 6.0, 11.0, 6.0}, at::kDouble);
  CHECK(at::allclose(by_summation(e, 3).squeeze(1), expected));
  CHECK(at::allclose(by_division(e.log(), 3).squeeze(1).exp(), expected));
  CHECK(at::allclose(by_division(e.log(), 2).squeeze(1).exp(), expected.slice(0, 0, 3)));
}

TEST_CASE("the paper's algorithms give the loss and its gradient in float64") {
  for (const int64_t classes : {6, 37, 100}) {
    for (const int64_t k : {1, 2, 5}) {
      for (const double tau : {10.0, 1.0, 0.3}) {
        CAPTURE(classes, k, tau);
        const at::Tensor scores = some_scores(8, classes, 2), labels = some_labels(8, classes);
        const Answer expected = ours(scores, labels, k, tau);
        for (const SmoothedAlgorithm algorithm :
             {SmoothedAlgorithm::kSummation, SmoothedAlgorithm::kAutograd, SmoothedAlgorithm::kCustomBackward}) {
          CAPTURE(static_cast<int>(algorithm));
          const Answer got = answer(scores, [&](const at::Tensor& leaf) {
            return smoothed_hinge_by(algorithm, leaf, labels, k, tau, /*alpha=*/1);
          });
          CHECK(at::allclose(got.losses, expected.losses, 1e-8, 1e-8));
          if (algorithm == SmoothedAlgorithm::kSummation) continue;
          // Their own backward pass loses digits where it takes differences.
          const double tolerance = algorithm == SmoothedAlgorithm::kCustomBackward ? 1e-5 : 1e-8;
          CHECK(at::allclose(got.gradient, expected.gradient, 0, tolerance));
        }
      }
    }
  }
}

TEST_CASE("their backward pass falls back on its approximation where one class is far ahead") {
  at::Tensor scores = some_scores(4, 50, 1);
  const at::Tensor labels = some_labels(4, 50);
  scores.index_put_({at::arange(4, at::kLong), (labels + 1) % 50}, 150.0);
  const Answer expected = ours(scores, labels, 5, 1);
  const Answer got = answer(scores, [&](const at::Tensor& leaf) {
    return smoothed_hinge_by(SmoothedAlgorithm::kCustomBackward, leaf, labels, 5, 1, 1);
  });
  CHECK(at::allclose(got.gradient, expected.gradient, 0, 1e-5));
}

TEST_CASE("summation overflows at low temperatures and logarithms do not") {
  const at::Tensor scores = some_scores(4, 1000, 3).to(at::kFloat), labels = some_labels(4, 1000);
  const at::Tensor x = scaled_others(scores, labels, 5, 0.01);
  CHECK_FALSE(by_summation(x.exp(), 5).isfinite().all().item<bool>());
  CHECK(by_division(x, 5).isfinite().all().item<bool>());
}

}  // namespace
}  // namespace settrain
