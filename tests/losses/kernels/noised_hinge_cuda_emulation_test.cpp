// The CUDA kernels of the noised hinge, emulated on the CPU, against the formula.
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "losses/kernels/noised_kernels.h"
// Before the device code:
#include "tests/support/cuda_emulation.h"
//
#include "losses/kernels/cuda/noised_hinge_block.cuh"
#include "losses/ops/smoothed_topk.h"
#include "src/core/noise.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr float kFloatInfinity = std::numeric_limits<float>::infinity(),
                kFloatNan = std::numeric_limits<float>::quiet_NaN();

struct Sizes {
  int64_t batch, classes, k, draws;
};

/// A batch with its memory.
struct Problem {
  NoisedHinge hinge{};
  std::vector<float> scores, margins, noise;
  std::vector<int64_t> labels;
  int64_t step = 12;

  Problem(const Sizes& sizes, float epsilon, const at::Tensor& given_scores) {
    const at::Tensor contiguous = given_scores.contiguous();
    scores.assign(contiguous.data_ptr<float>(), contiguous.data_ptr<float>() + contiguous.numel());
    for (int64_t row = 0; row < sizes.batch; ++row) labels.push_back((7 * row + 3) % sizes.classes);
    hinge.margin = 0.3F;
    hinge.factor = 1.5F;
    hinge.epsilon = epsilon;
    hinge.batch = sizes.batch;
    hinge.classes = sizes.classes;
    hinge.k = sizes.k;
    hinge.draws = sizes.draws;
    hinge.first = noise_counter({.seed = 5, .step = step, .first_position = 40}, sizes.batch);
    hinge.prune = true;
    noise.resize(sizes.batch * sizes.draws * sizes.classes);
    for (int64_t row = 0; row < sizes.batch; ++row) {
      NoiseCounter counter = hinge.first;
      counter.position += static_cast<uint32_t>(row);
      baseline::fill_noise_row(counter, sizes.draws, sizes.classes, noise.data() + row * sizes.draws * sizes.classes);
    }
    hinge.scores = scores.data();
    hinge.labels = labels.data();
  }
  Problem(const Problem&) = delete;

  const float* noise_row(int64_t row, int64_t draw) const {
    return noise.data() + (row * hinge.draws + draw) * hinge.classes;
  }
};

struct NoisedResults {
  std::vector<float> losses, gradient;
  std::vector<int32_t> chosen;
};

const std::vector<float> kOuter{0.5F, -2.0F, 3.0F};

NoisedResults run(const NoisedHinge& hinge, const cuda_emulation::Settings& settings) {
  const auto batch = static_cast<unsigned>(hinge.batch);
  NoisedResults results{std::vector<float>(hinge.batch), std::vector<float>(hinge.batch * hinge.classes),
                        std::vector<int32_t>(hinge.batch * hinge.draws, -1)};
  cuda_emulation::launch<NoisedHingeShared>(batch, kNoisedThreads, settings, [&](NoisedHingeShared& shared) {
    noised_hinge_block(hinge, results.losses.data(), results.chosen.data(), shared);
  });
  struct Nothing {};
  cuda_emulation::launch<Nothing>(batch, kNoisedThreads, settings, [&](Nothing&) {
    noised_hinge_gradient_block(hinge, results.losses.data(), results.chosen.data(), kOuter.data(),
                                results.gradient.data());
  });
  return results;
}

NoisedResults expected(const Problem& problem) {
  const NoisedHinge& hinge = problem.hinge;
  NoisedResults results;
  for (int64_t row = 0; row < hinge.batch; ++row) {
    const float* scores = hinge.scores + row * hinge.classes;
    std::vector<float> gradient(hinge.classes, 0);
    float sum = 0;
    for (int64_t draw = 0; draw < hinge.draws; ++draw) {
      std::vector<float> perturbed(hinge.classes);
      for (int64_t c = 0; c < hinge.classes; ++c) {
        perturbed[c] = std::fma(hinge.epsilon, problem.noise_row(row, draw)[c], scores[c]);
      }
      std::vector<int32_t> order(hinge.classes);
      std::iota(order.begin(), order.end(), 0);
      std::nth_element(order.begin(), order.begin() + hinge.k, order.end(), [&](int32_t a, int32_t b) {
        return perturbed[a] > perturbed[b] || (perturbed[a] == perturbed[b] && a < b);
      });
      results.chosen.push_back(order[hinge.k]);
      gradient[order[hinge.k]] += 1;
      sum += perturbed[order[hinge.k]];
    }
    const float margin = hinge.margins ? hinge.margins[row] : hinge.margin, draws = static_cast<float>(hinge.draws);
    const float loss = hinge.factor * (sum / draws - scores[hinge.labels[row]] + margin);
    results.losses.push_back(loss <= 0 ? 0 : loss);
    for (int64_t c = 0; c < hinge.classes; ++c) {
      const float share = gradient[c] / draws - static_cast<float>(c == hinge.labels[row]);
      results.gradient.push_back(loss > 0 ? kOuter[row] * hinge.factor * share : 0);
    }
  }
  return results;
}

bool nearly_equal(const std::vector<float>& got, const std::vector<float>& wanted) {
  return std::equal(got.begin(), got.end(), wanted.begin(), wanted.end(),
                    [](float a, float b) { return a == b || std::abs(a - b) <= 1e-6F * std::max(1.0F, std::abs(b)); });
}

/// With and without pruning.
void check(Problem& problem) {
  CAPTURE(problem.hinge.batch, problem.hinge.classes, problem.hinge.k, problem.hinge.draws, problem.hinge.epsilon);
  const NoisedResults wanted = expected(problem);
  for (const bool prune : {true, false}) {
    problem.hinge.prune = prune;
    const NoisedResults got = run(problem.hinge, cuda_emulation::kSettings[prune ? 1 : 0]);
    CHECK(got.chosen == wanted.chosen);
    CHECK(nearly_equal(got.losses, wanted.losses));
    CHECK(nearly_equal(got.gradient, wanted.gradient));
  }
}

at::Tensor emulated_scores(const Sizes& sizes) {
  return at::randn({sizes.batch, sizes.classes});
}

const std::vector<Sizes> kSizes = {
    {1, 2, 1, 1},     {3, 3, 1, 2},    {2, 3, 2, 9},    {3, 9, 5, 3},    {1, 9, 8, 4},     {3, 33, 5, 5},
    {1, 33, 20, 7},   {2, 33, 32, 6},  {3, 100, 5, 5},  {1, 100, 20, 8}, {1, 100, 99, 3},  {2, 1000, 5, 5},
    {1, 1000, 20, 9}, {1, 1000, 1, 1}, {1, 1081, 5, 2}, {1, 1081, 8, 5}, {1, 1081, 255, 2}};

TEST_CASE("Emulated CUDA kernel: the noised hinge is the formula's") {
  at::manual_seed(1);
  for (const Sizes& sizes : kSizes) {
    for (const float epsilon : {0.0F, 0.01F, 0.2F, 10.0F}) {
      Problem problem(sizes, epsilon, emulated_scores(sizes));
      check(problem);
    }
  }
}

TEST_CASE("Emulated CUDA kernel: a noised hinge of a rank too large for lists") {
  at::manual_seed(2);
  for (const Sizes& sizes : {Sizes{1, 300, 256, 2}, Sizes{1, 1000, 999, 1}, Sizes{1, 1081, 540, 2}}) {
    for (const float epsilon : {0.0F, 0.2F}) {
      Problem problem(sizes, epsilon, emulated_scores(sizes)), ties(sizes, epsilon, emulated_scores(sizes).round());
      check(problem);
      check(ties);
    }
  }
}

TEST_CASE("Emulated CUDA kernel: a noised hinge of more classes than lists hold") {
  at::manual_seed(3);
  const Sizes sizes{1, 5000, 5, 2};
  Problem spread(sizes, 0.01F, emulated_scores(sizes)), noisy(sizes, 10, emulated_scores(sizes));
  check(spread);
  check(noisy);
  // The best classes come last, so that lists fill up again and again.
  Problem rising(sizes, 1e-3F, at::arange(5000).to(at::kFloat).unsqueeze(0));
  check(rising);
}

TEST_CASE("Emulated CUDA kernel: ties of a noised hinge go to the lower class") {
  at::manual_seed(4);
  for (const Sizes& sizes : {Sizes{1, 2, 1, 2}, Sizes{2, 33, 5, 5}, Sizes{1, 300, 20, 5}, Sizes{1, 1081, 8, 3}}) {
    const at::Tensor equal = at::full({sizes.batch, sizes.classes}, 0.25F);
    const at::Tensor few_values = at::randint(0, 3, {sizes.batch, sizes.classes}).to(at::kFloat);
    const at::Tensor zeros = at::where(few_values > 1, 0.0F, -0.0F).to(at::kFloat);
    for (const float epsilon : {0.0F, 0.2F}) {
      for (const at::Tensor& scores : {equal, few_values, zeros}) {
        Problem problem(sizes, epsilon, scores);
        check(problem);
      }
    }
  }
}

TEST_CASE("Emulated CUDA kernel: infinite scores in a noised hinge") {
  at::manual_seed(5);
  for (const Sizes& sizes : {Sizes{3, 9, 5, 3}, Sizes{3, 100, 5, 5}, Sizes{2, 1000, 20, 4}}) {
    const at::Tensor scores = emulated_scores(sizes);
    // The label stays finite, or the loss would be infinity minus infinity.
    const at::Tensor which = at::rand({sizes.batch, sizes.classes});
    for (int64_t row = 0; row < sizes.batch; ++row) which[row][(7 * row + 3) % sizes.classes] = 0.5F;
    Problem few(sizes, 0.2F,
                scores.masked_fill(which > 0.9F, kFloatInfinity).masked_fill(which < 0.1F, -kFloatInfinity));
    Problem hidden(sizes, 0.2F, scores.masked_fill(which != 0.5F, -kFloatInfinity));
    check(few);
    check(hidden);
  }
}

TEST_CASE("Emulated CUDA kernel: a row of the noised hinge with a NaN is NaN") {
  at::manual_seed(6);
  const Sizes sizes{3, 1000, 5, 3};
  const at::Tensor scores = emulated_scores(sizes);
  scores[1][700] = kFloatNan;
  const Problem problem(sizes, 0.2F, scores);
  const NoisedResults wanted = expected(problem), got = run(problem.hinge, cuda_emulation::kSettings[0]);
  CHECK(got.losses[0] == Approx(wanted.losses[0]));
  CHECK(std::isnan(got.losses[1]));
  CHECK(got.losses[2] == Approx(wanted.losses[2]));
  for (int64_t c = 0; c < 3000; ++c) CHECK(std::isnan(got.gradient[c]) == (c / 1000 == 1));
  CHECK(std::all_of(got.chosen.begin(), got.chosen.end(), [](int32_t c) { return c >= 0 && c < 1000; }));
}

TEST_CASE("Emulated CUDA kernel: margins, given noise and the step in memory of a noised hinge") {
  at::manual_seed(7);
  const Sizes sizes{3, 100, 5, 6};
  Problem problem(sizes, 0.2F, emulated_scores(sizes));
  problem.margins = {0.5F, -100, 2};  // the second row is satisfied
  problem.hinge.margins = problem.margins.data();
  check(problem);
  problem.hinge.first.step = 99;
  problem.hinge.step = &problem.step;
  check(problem);
  problem.hinge.step = nullptr;
  for (const Sizes& other : {sizes, Sizes{2, 300, 270, 2}}) {
    Problem given(other, 0.2F, emulated_scores(other));
    const at::Tensor noise = at::randn({static_cast<int64_t>(given.noise.size())}) * 4;
    std::copy_n(noise.data_ptr<float>(), given.noise.size(), given.noise.data());
    given.hinge.noise = given.noise.data();
    check(given);
  }
}

TEST_CASE("Emulated CUDA kernel: many draws of a noised hinge") {
  at::manual_seed(8);
  const Sizes sizes{1, 33, 5, 203};
  Problem problem(sizes, 0.2F, emulated_scores(sizes));
  check(problem);
}

TEST_CASE("Emulated CUDA kernel: the noised hinge's value is smoothed_topk's") {
  at::manual_seed(9);
  const Sizes sizes{3, 100, 5, 5};
  Problem problem(sizes, 0.2F, emulated_scores(sizes));
  problem.hinge.margin = 50;  // all rows active
  const at::Tensor scores = at::tensor(problem.scores).view({3, 100});
  const at::Tensor noise = at::tensor(problem.noise).view({3, 5, 100});
  const SmoothedTopk smoothed = smoothed_topk(scores, noise, 6, 0.2);
  const at::Tensor label = scores.gather(1, at::tensor(problem.labels).unsqueeze(1)).squeeze(1);
  const NoisedResults got = run(problem.hinge, cuda_emulation::kSettings[0]);
  CHECK(at::allclose(at::tensor(got.losses), 1.5 * (50 + smoothed.values - label), 1e-6));
  CHECK(at::equal(at::tensor(got.chosen).view({3, 5}).to(at::kLong), smoothed.chosen));
}

}  // namespace
}  // namespace settrain
