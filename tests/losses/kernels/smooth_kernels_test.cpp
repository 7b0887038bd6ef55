// The kernels of the smoothed hinge and of the exact smoothed top-K against LibTorch's operations.
#include "losses/kernels/smooth_kernels.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>

#include <string>
#include <vector>

#include "losses/ops/smoothed_topk.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

struct KernelResult {
  at::Tensor losses, gradient;
};

at::Tensor labels_of(const at::Tensor& scores) {
  return at::arange(scores.size(0), at::kLong).mul(5).remainder(scores.size(1));
}

KernelResult compute(Loss& loss, const at::Tensor& scores, LossMethod method) {
  const at::Tensor leaf = scores.detach().clone().requires_grad_();
  LossInput input = test::input_of(leaf, labels_of(scores));
  input.method = method;
  const LossValue value = loss(input);
  value.sum.backward();
  return {value.per_sample.detach(), leaf.grad()};
}

// Largest difference of losses and gradients, relative to `scale`.
double difference(const KernelResult& a, const KernelResult& b, double scale) {
  return std::max((a.losses - b.losses).abs().max().item<double>() / scale,
                  (a.gradient - b.gradient).abs().max().item<double>());
}

std::vector<at::Tensor> score_cases(int64_t classes) {
  at::manual_seed(classes);
  const at::Tensor scores = at::randn({3, classes}, at::kDouble) * 3;
  return {scores, scores.round(), at::zeros({3, classes}, at::kDouble), scores * 1e3};
}

TEST_CASE("Smoothed hinge: the kernel and LibTorch's operations agree") {
  for (const int64_t classes : {2, 3, 9, 64, 101}) {
    for (const int64_t k : {int64_t{1}, int64_t{2}, int64_t{5}, classes / 2, classes - 1}) {
      if (k < 1 || k >= classes) continue;
      for (const std::string tau : {"1", "0.1", "0.0001", "50"}) {
        const auto loss = test::build_loss("smoothed_topk_hinge", test::context_of(classes),
                                           {"k=" + std::to_string(k), "tau=" + tau});
        for (const at::Tensor& scores : score_cases(classes)) {
          const double scale = std::max(1.0, scores.abs().max().item<double>());
          CAPTURE(classes, k, tau, scale);
          const KernelResult plain = compute(*loss, scores, LossMethod::kPlain);
          // Exponents are differences of scores over k tau: that is what their rounding is multiplied by.
          const double rounding = 1e-15 * scale / (static_cast<double>(k) * std::stod(tau));
          CHECK(difference(compute(*loss, scores, LossMethod::kFast), plain, scale) < 1e-12 + 20 * rounding);
          const KernelResult narrow = compute(*loss, scores.to(at::kFloat), LossMethod::kFast);
          const KernelResult narrow_plain = compute(*loss, scores.to(at::kFloat), LossMethod::kPlain);
          CHECK(difference(narrow, narrow_plain, scale) < 1e-6);
        }
      }
    }
  }
}

TEST_CASE("Smoothed hinge: more sets than a double holds go through LibTorch's operations") {
  at::manual_seed(1);
  const auto loss = test::build_loss("smoothed_topk_hinge", test::context_of(1200), {"k=500"});
  const KernelResult result = compute(*loss, at::randn({1, 1200}), LossMethod::kFast);
  CHECK(at::isfinite(result.losses).all().item<bool>());
  CHECK(std::abs(result.gradient.sum().item<double>()) < 1e-5);
}

TEST_CASE("Exact smoothed top-K: the kernel and LibTorch's operations agree") {
  for (const int64_t classes : {2, 3, 9, 64, 101}) {
    for (const int64_t rank : {int64_t{1}, int64_t{2}, int64_t{6}, classes / 2, classes}) {
      if (rank < 1 || rank > classes) continue;
      for (const double epsilon : {0.01, 0.2, 10.0}) {
        for (const at::Tensor& scores : score_cases(classes)) {
          CAPTURE(classes, rank, epsilon);
          const auto run = [&](const at::Tensor& s, LossMethod method) -> KernelResult {
            const at::Tensor leaf = s.detach().clone().requires_grad_();
            const at::Tensor values = exact_smoothed_topk(leaf, rank, epsilon, /*nodes=*/128, method);
            values.sum().backward();
            return {values.detach(), leaf.grad()};
          };
          const double scale = std::max(1.0, scores.abs().max().item<double>());
          CHECK(difference(run(scores, LossMethod::kFast), run(scores, LossMethod::kPlain), scale) < 1e-10);
          const at::Tensor narrow = scores.to(at::kFloat);
          CHECK(difference(run(narrow, LossMethod::kFast), run(narrow, LossMethod::kPlain), scale) < 1e-6);
        }
      }
    }
  }
}

TEST_CASE("Smooth kernels: neither threads, layout nor a gradient that is not asked for change a bit") {
  at::manual_seed(2);
  const at::Tensor scores = at::randn({64, 301});
  const int threads = at::get_num_threads();
  for (const char* name : {"smoothed_topk_hinge", "exact_topk"}) {
    CAPTURE(name);
    const auto loss = test::build_loss(name, test::context_of(301));
    at::set_num_threads(1);
    const KernelResult alone = compute(*loss, scores, LossMethod::kFast);
    at::set_num_threads(3);
    const KernelResult together = compute(*loss, scores, LossMethod::kFast);
    at::set_num_threads(threads);
    const KernelResult other_layout = compute(*loss, scores.t().contiguous().t(), LossMethod::kFast);
    CHECK(at::equal(alone.losses, together.losses));
    CHECK(at::equal(alone.gradient, together.gradient));
    CHECK(at::equal(alone.gradient, other_layout.gradient));
    CHECK(at::equal(alone.losses, (*loss)(test::input_of(scores, labels_of(scores))).per_sample));
  }
}

TEST_CASE("Smooth kernels: every instruction set that this processor has gives the same bits") {
  at::manual_seed(3);
  const at::Tensor scores = at::randn({4, 77}), labels = labels_of(scores);
  const GaussLegendre rule(48);
  const auto run = [&](InstructionSet set) {
    std::vector<at::Tensor> results;
    for (int i = 0; i < 2; ++i) {
      results.push_back(at::empty({4}));
      results.push_back(at::empty({4, 77}));
    }
    const SmoothedHinge<float> hinge{
        scores.const_data_ptr<float>(), labels.const_data_ptr<int64_t>(), 4, 77, 5, 0.1, 1};
    std::vector<char> workspace(static_cast<size_t>(SETTRAIN_PICK(set, smoothed_hinge_workspace)(77, 5)));
    SETTRAIN_PICK(set, smoothed_hinge_rows<float>)
    (hinge, 0, 4, workspace.data(), results[0].data_ptr<float>(), results[1].data_ptr<float>());
    const ExactTopkBatch<float> batch{
        scores.const_data_ptr<float>(), 4, 77, 6, 0.2, rule.nodes.data(), rule.weights.data(), 48};
    workspace.resize(static_cast<size_t>(SETTRAIN_PICK(set, exact_topk_workspace)(77, 6)));
    SETTRAIN_PICK(set, exact_topk_rows<float>)
    (batch, 0, 4, workspace.data(), results[2].data_ptr<float>(), results[3].data_ptr<float>());
    return results;
  };
  const auto expected = run(InstructionSet::kBaseline);
  for (const InstructionSet set : {InstructionSet::kAvx2, InstructionSet::kAvx512}) {
    if (set > instruction_set()) continue;
    const auto got = run(set);
    for (size_t i = 0; i < got.size(); ++i) CHECK(at::equal(expected[i], got[i]));
  }
}

}  // namespace
}  // namespace settrain
