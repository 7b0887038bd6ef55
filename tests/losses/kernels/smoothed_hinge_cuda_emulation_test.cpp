// The CUDA kernel of the smoothed top-K hinge, emulated on the CPU, against ATen's operations in float64.
#include <ATen/ATen.h>

#include <limits>

#include "losses/ops/polynomials.h"
// Before the device code:
#include "tests/support/cuda_emulation.h"
//
#include "losses/kernels/cuda/smoothed_hinge_block.cuh"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"

namespace settrain {
namespace {

struct SmoothedOptions {
  int64_t k;
  double tau, alpha = 1;
};

struct SmoothedResults {
  at::Tensor losses, gradient;
};

at::Tensor labels_for(const at::Tensor& scores) {
  return (at::arange(scores.size(0), at::kLong) * 7 + 3).remainder(scores.size(1));
}

template <int kMost, int kThreads, class T>
SmoothedResults run(const at::Tensor& scores, const SmoothedOptions& options,
                    const cuda_emulation::Settings& settings) {
  const at::Tensor labels = labels_for(scores);
  const SmoothedHinge<T> hinge{.scores = scores.const_data_ptr<T>(),
                               .labels = labels.const_data_ptr<int64_t>(),
                               .batch = scores.size(0),
                               .classes = scores.size(1),
                               .k = options.k,
                               .tau = options.tau,
                               .alpha = options.alpha};
  const double nan = std::numeric_limits<double>::quiet_NaN();
  SmoothedResults results{at::full({hinge.batch}, nan, scores.options()), at::full_like(scores, nan)};
  at::Tensor scratch = at::full_like(scores, nan, at::kDouble), alone = at::full_like(results.losses, nan);
  const auto block = [&](auto& shared, T* losses, T* gradient) {
    const int64_t row = blockIdx.x * hinge.classes;
    smoothed_hinge_block<kMost, kThreads>(hinge, losses, gradient ? gradient + row : nullptr,
                                          scratch.data_ptr<double>() + row, shared);
  };
  using Shared = SmoothedHingeShared<kMost, kThreads>;
  const auto blocks = static_cast<unsigned>(hinge.batch);
  cuda_emulation::launch<Shared>(blocks, kThreads, settings, [&](Shared& shared) {
    block(shared, results.losses.data_ptr<T>(), results.gradient.data_ptr<T>());
  });
  if (!settings.backwards) return results;
  cuda_emulation::launch<Shared>(blocks, kThreads, settings,
                                 [&](Shared& shared) { block(shared, alone.data_ptr<T>(), nullptr); });
  CHECK(at::equal(alone.nan_to_num(-1), results.losses.nan_to_num(-1)));
  return results;
}

SmoothedResults run(const at::Tensor& scores, const SmoothedOptions& options,
                    const cuda_emulation::Settings& settings) {
  const bool is_double = scores.scalar_type() == at::kDouble;
  if (options.k > 8) {
    return is_double ? run<kMostSmoothedHingeK, 128, double>(scores, options, settings)
                     : run<kMostSmoothedHingeK, 128, float>(scores, options, settings);
  }
  return is_double ? run<8, 256, double>(scores, options, settings) : run<8, 256, float>(scores, options, settings);
}

at::Tensor formula(const at::Tensor& scores, const SmoothedOptions& options) {
  const at::Tensor scaled = scores.div(static_cast<double>(options.k) * options.tau);
  const at::Tensor label = labels_for(scores).unsqueeze(1);
  const at::Tensor sigma = log_elementary_symmetric(scaled.scatter(1, label, kLogOfNothing), options.k);
  const at::Tensor z = sigma.select(1, options.k) - sigma.select(1, options.k - 1) -
                       scaled.gather(1, label).squeeze(1) + options.alpha / options.tau;
  return at::logaddexp(z, at::zeros_like(z)) * options.tau;
}

SmoothedResults expected(const at::Tensor& scores, const SmoothedOptions& options) {
  const at::Tensor exact = scores.to(at::kDouble);
  return {formula(exact, options),
          test::gradient_of([&](const at::Tensor& s) { return formula(s, options).sum(); }, exact)};
}

void check(const at::Tensor& scores, const SmoothedOptions& options, double tolerance) {
  CAPTURE(scores.sizes(), options.k, options.tau, scores.scalar_type());
  const SmoothedResults wanted = expected(scores, options);
  SmoothedResults first;
  for (const cuda_emulation::Settings& settings : cuda_emulation::kSettings) {
    const SmoothedResults got = run(scores, options, settings);
    CHECK(at::allclose(got.losses.to(at::kDouble), wanted.losses, tolerance, tolerance));
    CHECK((got.gradient.to(at::kDouble) - wanted.gradient).abs().max().item<double>() <= tolerance);
    if (first.losses.defined()) {
      CHECK(at::equal(got.losses, first.losses));
      CHECK(at::equal(got.gradient, first.gradient));
    }
    first = got;
  }
}

TEST_CASE("Emulated CUDA kernel: the smoothed top-K hinge is the formula's") {
  at::manual_seed(1);
  for (const int64_t classes : {2, 3, 9, 33, 1081}) {
    for (const int64_t k : {int64_t{1}, int64_t{2}, int64_t{5}, int64_t{8}, int64_t{20}, int64_t{32}, classes - 1}) {
      if (k >= classes || k > kMostSmoothedHingeK) continue;
      const at::Tensor scores = at::randn({classes == 9 ? 3 : 1, classes}, at::kDouble) * 3;
      check(scores, {k, k == 5 ? 1.0 : 0.1}, 1e-11);
      if (k == 5 || k == 20) check(scores.to(at::kFloat), {k, 1.0}, 1e-6);
    }
  }
}

TEST_CASE("Emulated CUDA kernel: a smoothed top-K hinge of small tau, and of large scores") {
  at::manual_seed(2);
  for (const int64_t k : {1, 5, 20}) {
    const at::Tensor scores = at::randn({1, 300}, at::kDouble);
    for (const double tau : {1e-3, 1e-6, 100.0}) check(scores, {k, tau}, 1e-8);
    check(scores * 1e4, {k, 1.0}, 1e-8);
    check(scores - 1e5, {k, 1.0, 0.0}, 1e-8);
  }
  check(at::randn({1, 5000}, at::kDouble), {5, 0.5}, 1e-10);
}

TEST_CASE("Emulated CUDA kernel: ties in the smoothed top-K hinge") {
  at::manual_seed(3);
  for (const int64_t k : {1, 5, 20}) {
    check(at::full({1, 1000}, 0.25, at::kDouble), {k, 1.0}, 1e-10);
    const at::Tensor few_values = at::randint(0, 3, {2, 100}).to(at::kDouble);
    for (const double tau : {1.0, 1e-4}) check(few_values, {k, tau}, 1e-8);
  }
}

TEST_CASE("Emulated CUDA kernel: the smoothed top-K hinge of infinite scores and of NaN") {
  const double infinity = std::numeric_limits<double>::infinity();
  at::manual_seed(4);
  const at::Tensor scores = at::randn({3, 40}, at::kDouble);
  at::Tensor hidden = scores.clone();
  hidden.slice(1, 20).fill_(-infinity);
  at::Tensor none = scores.clone();
  none.slice(1, 20).fill_(-1e4);
  const SmoothedResults got = run(hidden, {5, 1.0}, cuda_emulation::kSettings[0]), wanted = expected(none, {5, 1.0});
  CHECK(at::allclose(got.losses, wanted.losses, 1e-12, 0));
  CHECK(at::allclose(got.gradient, wanted.gradient, 0, 1e-12));

  // Numbers, however few classes are finite.
  hidden.fill_(-infinity);
  for (const int64_t k : {5, 20})
    CHECK(run(hidden, {k, 1.0}, cuda_emulation::kSettings[0]).gradient.isfinite().all().item<bool>());

  at::Tensor broken = scores.clone();
  broken[1][7] = std::numeric_limits<double>::quiet_NaN();
  const SmoothedResults results = run(broken.to(at::kFloat), {5, 1.0}, cuda_emulation::kSettings[0]);
  const at::Tensor second = at::arange(3) == 1;
  CHECK(at::equal(results.losses.isnan(), second));
  CHECK(at::equal(results.gradient.isnan(), second.unsqueeze(1).expand({3, 40})));
}

}  // namespace
}  // namespace settrain
