// The CUDA kernel of the exact smoothed top-K, emulated on the CPU, against ATen's operations in float64.
#include <ATen/ATen.h>

#include <limits>

#include "losses/ops/smoothed_topk.h"
// Before the device code:
#include "tests/support/cuda_emulation.h"
//
#include "losses/kernels/cuda/exact_topk_block.cuh"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"

namespace settrain {
namespace {

constexpr int kThreads = 128;

struct ExactOptions {
  int64_t rank;
  double epsilon;
  int64_t nodes = 32;
};

struct ExactResults {
  at::Tensor values, gradient;
};

template <int kMost, class T>
ExactResults run(const at::Tensor& scores, const ExactOptions& options, const cuda_emulation::Settings& settings,
                 bool with_gradient) {
  const GaussLegendre rule(options.nodes);
  const ExactTopkBatch<T> batch{.scores = scores.const_data_ptr<T>(),
                                .batch = scores.size(0),
                                .classes = scores.size(1),
                                .rank = options.rank,
                                .epsilon = options.epsilon,
                                .nodes = rule.nodes.data(),
                                .weights = rule.weights.data(),
                                .num_nodes = options.nodes};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  ExactResults results{at::full({batch.batch}, nan, scores.options()), at::full_like(scores, nan)};
  std::vector<ExactTopkItem> items(batch.batch * batch.classes, {nan, nan, nan, -1});
  using Shared = ExactTopkShared<kMost, kThreads>;
  cuda_emulation::launch<Shared>(static_cast<unsigned>(batch.batch), kThreads, settings, [&](Shared& shared) {
    const int64_t row = blockIdx.x * batch.classes;
    exact_topk_block(batch, results.values.data_ptr<T>(),
                     with_gradient ? results.gradient.data_ptr<T>() + row : nullptr, items.data() + row, shared);
  });
  return results;
}

ExactResults run(const at::Tensor& scores, const ExactOptions& options, const cuda_emulation::Settings& settings,
                 bool with_gradient = true) {
  const bool is_double = scores.scalar_type() == at::kDouble;
  if (options.rank > 9) {
    return is_double ? run<kMostExactTopkRank - 1, double>(scores, options, settings, with_gradient)
                     : run<kMostExactTopkRank - 1, float>(scores, options, settings, with_gradient);
  }
  return is_double ? run<8, double>(scores, options, settings, with_gradient)
                   : run<8, float>(scores, options, settings, with_gradient);
}

void check(const at::Tensor& scores, const ExactOptions& options, double tolerance) {
  CAPTURE(scores.sizes(), options.rank, options.epsilon, scores.scalar_type());
  const at::Tensor exact = scores.to(at::kDouble);
  const auto formula = [&](const at::Tensor& s) {
    return exact_smoothed_topk(s, options.rank, options.epsilon, options.nodes);
  };
  const at::Tensor values = formula(exact);
  const at::Tensor gradient = test::gradient_of([&](const at::Tensor& s) { return formula(s).sum(); }, exact);
  ExactResults first;
  for (const cuda_emulation::Settings& settings : cuda_emulation::kSettings) {
    const ExactResults got = run(scores, options, settings);
    CHECK((got.values.to(at::kDouble) - values).abs().max().item<double>() <=
          tolerance * std::max(1.0, options.epsilon));
    CHECK((got.gradient.to(at::kDouble) - gradient).abs().max().item<double>() <= tolerance);
    if (first.values.defined()) {
      CHECK(at::equal(got.values, first.values));
      CHECK(at::equal(got.gradient, first.gradient));
    }
    first = got;
  }
}

TEST_CASE("Emulated CUDA kernel: the exact smoothed top-K is the formula's") {
  at::manual_seed(1);
  for (const int64_t classes : {1, 2, 3, 33, 300}) {
    for (const int64_t rank : {int64_t{1}, int64_t{2}, int64_t{6}, int64_t{9}, int64_t{33}, classes}) {
      if (rank > classes || rank > kMostExactTopkRank) continue;
      const at::Tensor scores = at::randn({1, classes}, at::kDouble);
      const double epsilon = classes % 2 ? 0.2 : 3.0;
      check(scores, {rank, epsilon, 64}, 1e-10);
      if (rank == 6) {
        check(scores, {rank, 1e-3, 64}, 1e-11);
        check(scores.to(at::kFloat), {rank, epsilon}, 1e-6);
      }
    }
  }
  const at::Tensor scores = at::randn({2, 1081}, at::kDouble) * 3;
  const ExactOptions options{6, 0.2};
  check(scores, options, 1e-7);
  CHECK(at::equal(run(scores, options, cuda_emulation::kSettings[0], /*with_gradient=*/false).values,
                  run(scores, options, cuda_emulation::kSettings[1]).values));
}

TEST_CASE("Emulated CUDA kernel: ties, and scores far away, in the exact smoothed top-K") {
  at::manual_seed(2);
  for (const int64_t rank : {1, 6, 21}) {
    check(at::full({1, 200}, 0.25, at::kDouble), {rank, 0.5, 64}, 1e-10);
    check(at::randint(0, 3, {2, 60}).to(at::kDouble), {rank, 0.1, 64}, 1e-10);
    check(at::randn({1, 60}, at::kDouble) * 1e4, {rank, 0.1, 64}, 1e-10);
    check(at::randn({1, 60}, at::kDouble) + 1e6, {rank, 1e-4, 64}, 1e-8);
  }
}

TEST_CASE("Emulated CUDA kernel: the exact smoothed top-K of infinite scores and of NaN") {
  const double infinity = std::numeric_limits<double>::infinity();
  at::manual_seed(3);
  const at::Tensor scores = at::randn({3, 40}, at::kDouble);
  at::Tensor odd = scores.clone(), large = scores.clone();
  odd.slice(1, 0, 3).fill_(infinity);
  odd.slice(1, 20).fill_(-infinity);
  large.slice(1, 0, 3).fill_(1e4);
  large.slice(1, 20).fill_(-1e4);
  const ExactResults got = run(odd, {6, 0.2}, cuda_emulation::kSettings[0]);
  const ExactResults wanted = run(large, {6, 0.2}, cuda_emulation::kSettings[0]);
  CHECK(at::allclose(got.values, wanted.values, 0, 1e-12));
  CHECK(at::allclose(got.gradient, wanted.gradient, 0, 1e-12));

  at::Tensor broken = scores.clone();
  broken[1][7] = std::numeric_limits<double>::quiet_NaN();
  const ExactResults results = run(broken.to(at::kFloat), {6, 0.2}, cuda_emulation::kSettings[0]);
  const at::Tensor second = at::arange(3) == 1;
  CHECK(at::equal(results.values.isnan(), second));
  CHECK(at::equal(results.gradient.isnan(), second.unsqueeze(1).expand({3, 40})));
}

}  // namespace
}  // namespace settrain
