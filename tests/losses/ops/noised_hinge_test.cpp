// The kernel of the noised losses against the formula as LibTorch's operations read it.
#include "losses/ops/noised_hinge.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <cmath>
#include <limits>
#include <vector>

#include "losses/kernels/noised_kernels.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

struct Result {
  at::Tensor losses, gradient;
};

struct Case {
  int64_t batch, classes;
  SampledTopkOptions topk;
  NoisedHingeTerms terms = {.margin = 1};
};

Result compute(const Case& c, const at::Tensor& scores, LossMethod method, const at::Tensor& noise = {}) {
  const at::Tensor leaf = scores.detach().clone().requires_grad_();
  const at::Tensor labels = at::arange(c.batch, at::kLong).mul(7).remainder(c.classes);
  LossInput input = test::input_of(leaf, labels, noise);
  input.method = method;
  const at::Tensor losses = noised_hinge(leaf, input, c.topk, c.terms);
  losses.mul(at::arange(1, c.batch + 1, losses.options()).detach()).sum().backward();
  return {losses.detach(), leaf.grad()};
}

at::Tensor scores_of(const Case& c, double sd = 3) {
  at::manual_seed(c.classes);
  return at::randn({c.batch, c.classes}).mul(sd);
}

bool same(const Result& a, const Result& b) {
  return at::equal(a.losses, b.losses) && at::equal(a.gradient, b.gradient);
}

bool near(const Result& a, const Result& b) {
  return at::allclose(a.losses, b.losses, 1e-5, 1e-5) && at::allclose(a.gradient, b.gradient, 1e-5, 1e-6);
}

std::vector<Case> grid() {
  std::vector<Case> cases;
  for (const int64_t classes : {2, 3, 15, 16, 17, 63, 64, 65, 100, 1081}) {
    for (const int64_t k : {int64_t{1}, int64_t{5}, int64_t{20}, classes / 2, classes - 1}) {
      if (k < 1 || k >= classes) continue;
      for (int64_t draws = 1; draws <= 6; ++draws) {
        for (const double epsilon : {0.0, 0.2, 10.0}) cases.push_back({3, classes, {k, epsilon, draws}});
      }
    }
  }
  return cases;
}

TEST_CASE("Noised hinge: pruned, unpruned and by LibTorch's operations it is the same") {
  for (const Case& c : grid()) {
    CAPTURE(c.classes, c.topk.k, c.topk.num_draws, c.topk.epsilon);
    const at::Tensor scores = scores_of(c);
    const Result pruned = compute(c, scores, LossMethod::kFast);
    CHECK(same(pruned, compute(c, scores, LossMethod::kUnpruned)));
    CHECK(near(pruned, compute(c, scores, LossMethod::kPlain)));
  }
}

TEST_CASE("Noised hinge: the same for scores that tie, and for infinite ones") {
  for (Case c : grid()) {
    if (c.topk.num_draws != 5) continue;
    CAPTURE(c.classes, c.topk.k, c.topk.epsilon);
    const at::Tensor quantised = scores_of(c).round();
    at::Tensor infinite = scores_of(c);
    infinite[0][c.classes / 2] = std::numeric_limits<float>::infinity();
    infinite[1].fill_(-std::numeric_limits<float>::infinity());
    infinite[1][0] = 2;
    for (const at::Tensor& scores : {quantised, at::zeros_like(quantised), at::zeros_like(quantised).neg()}) {
      const Result pruned = compute(c, scores, LossMethod::kFast);
      CHECK(same(pruned, compute(c, scores, LossMethod::kUnpruned)));
      CHECK(near(pruned, compute(c, scores, LossMethod::kPlain)));
    }
    const at::Tensor fast = compute(c, infinite, LossMethod::kFast).losses;
    CHECK(at::allclose(fast, compute(c, infinite, LossMethod::kPlain).losses, 1e-5, 1e-5, /*equal_nan=*/true));
    CHECK(at::allclose(fast, compute(c, infinite, LossMethod::kUnpruned).losses, 0, 0, /*equal_nan=*/true));
  }
}

TEST_CASE("Noised hinge: margins, factor and given noise are those of the formula") {
  Case c{4, 50, {5, 0.5, 3}, {.margins = at::tensor({0.1F, 0.F, 2.F, 30.F}), .factor = 60}};
  const at::Tensor scores = scores_of(c, 1), noise = at::randn({4, 3, 50});
  CHECK(near(compute(c, scores, LossMethod::kFast), compute(c, scores, LossMethod::kPlain)));
  CHECK(near(compute(c, scores, LossMethod::kFast, noise), compute(c, scores, LossMethod::kPlain, noise)));
}

TEST_CASE("Noised hinge: a row with a NaN is NaN, the others are as without it") {
  const Case c{3, 40, {5, 0.2, 5}};
  const at::Tensor scores = scores_of(c);
  const Result clean = compute(c, scores, LossMethod::kFast);
  for (const int64_t j : {0, 17, 39}) {
    at::Tensor spoilt = scores.clone();
    spoilt[1][j] = std::numeric_limits<float>::quiet_NaN();
    const Result got = compute(c, spoilt, LossMethod::kFast);
    CHECK(got.losses[1].isnan().item<bool>());
    CHECK(got.gradient[1].isnan().all().item<bool>());
    for (const int64_t row : {0, 2}) {
      CHECK(at::equal(got.losses[row], clean.losses[row]));
      CHECK(at::equal(got.gradient[row], clean.gradient[row]));
    }
  }
}

TEST_CASE("Noised hinge: neither the number of threads nor the layout changes a bit") {
  const Case c{256, 300, {5, 0.2, 5}};
  const at::Tensor scores = scores_of(c);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const Result alone = compute(c, scores, LossMethod::kFast);
  at::set_num_threads(3);
  const Result together = compute(c, scores, LossMethod::kFast);
  at::set_num_threads(threads);
  CHECK(same(alone, together));
  CHECK(same(alone, compute(c, scores.t().contiguous().t(), LossMethod::kFast)));
}

TEST_CASE("Noised hinge: few classes are drawn where scores spread, all where they do not") {
  const Case c{64, 1000, {5, 0.2, 5}};
  const NoiseKey key{.seed = 4, .step = 10};
  const double wide = drawn_classes(scores_of(c, 3), c.topk, key).mean().item<double>();
  const double narrow = drawn_classes(scores_of(c, 0.01), c.topk, key).mean().item<double>();
  CHECK(wide < 40);
  CHECK(wide >= 6);
  CHECK(narrow == 1000);
}

TEST_CASE("The kernels of every instruction set that this processor has give the same bits") {
  const Case c{5, 217, {7, 0.2, 7}};
  const at::Tensor scores = scores_of(c), labels = at::arange(5, at::kLong);
  const auto run = [&](InstructionSet set) {
    NoisedHinge hinge{};
    hinge.scores = scores.const_data_ptr<float>();
    hinge.labels = labels.const_data_ptr<int64_t>();
    hinge.margin = hinge.factor = 1;
    hinge.epsilon = 0.2F;
    hinge.batch = 5;
    hinge.classes = 217;
    hinge.k = 7;
    hinge.draws = 7;
    hinge.first = noise_counter({.seed = 4}, 5);
    hinge.prune = true;
    std::vector<char> scratch(static_cast<size_t>(SETTRAIN_PICK(set, noised_hinge_scratch)(hinge)));
    const at::Tensor losses = at::empty({5}), chosen = at::empty({5, 7}, at::kInt);
    SETTRAIN_PICK(set, noised_hinge_rows)
    (hinge, 0, 5, scratch.data(), losses.data_ptr<float>(), chosen.data_ptr<int32_t>(), nullptr);
    return std::pair{losses, chosen};
  };
  const auto [losses, chosen] = run(InstructionSet::kBaseline);
  for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (set > instruction_set()) continue;
    const auto [other_losses, other_chosen] = run(set);
    CHECK(at::equal(losses, other_losses));
    CHECK(at::equal(chosen, other_chosen));
  }
}

}  // namespace
}  // namespace settrain
