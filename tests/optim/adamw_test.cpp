#include <ATen/ATen.h>

#include <array>
#include <cmath>

#include "tests/support/catch2.h"
#include "tests/support/optimizers.h"

namespace settrain {
namespace {

at::Tensor trained(const at::Tensor& values) {
  return values.clone().requires_grad_(true);
}

constexpr double kBeta1 = 0.8, kBeta2 = 0.95, kEps = 1e-6, kDecay = 0.2;
const std::vector<std::string> kSettings{"optimizer.beta1=0.8", "optimizer.beta2=0.95", "optimizer.eps=1e-6",
                                         "optimizer.weight_decay=0.2"};

// The formula, a number at a time.
struct PlainAdamW {
  double m = 0, v = 0;
  int t = 0;

  double step(double p, double g, double lr, double decay) {
    ++t;
    m = kBeta1 * m + (1 - kBeta1) * g;
    v = kBeta2 * v + (1 - kBeta2) * g * g;
    const double mean = m / (1 - std::pow(kBeta1, t)), square = v / (1 - std::pow(kBeta2, t));
    return p - lr * (decay * p + mean / (std::sqrt(square) + kEps));
  }
};

TEST_CASE("steps of adamw follow the formula, with a learning rate that changes, decayed and not") {
  const auto dtype = GENERATE(at::kDouble, at::kFloat);
  constexpr int kSize = 37;  // longer than a vector register, and no multiple of one
  at::manual_seed(3);
  const at::Tensor first = at::randn({kSize}, at::kDouble);
  at::Tensor decayed = trained(first.to(dtype)), spared = trained(first.to(dtype));
  const auto optimizer =
      test::optimizer_of("adamw", {{"a", decayed}, {"b", spared, /*lr_factor=*/3, /*decays=*/false}}, kSettings);

  std::array<PlainAdamW, kSize> plain_decayed, plain_spared;
  at::Tensor expected_decayed = first.to(dtype).to(at::kDouble), expected_spared = expected_decayed.clone();
  for (const double lr : {0.1, 0.2, 0.05, 0.1, 0.01}) {
    const at::Tensor gradient = at::randn({kSize}, at::kDouble).to(dtype);
    decayed.mutable_grad() = gradient.clone();
    spared.mutable_grad() = gradient.clone();
    optimizer->step(at::scalar_tensor(lr, at::kDouble));
    for (int i = 0; i < kSize; ++i) {
      const double g = gradient[i].item<double>();
      auto& plain = plain_decayed[static_cast<size_t>(i)];
      expected_decayed[i] = plain.step(expected_decayed[i].item<double>(), g, lr, kDecay);
      auto& other = plain_spared[static_cast<size_t>(i)];
      expected_spared[i] = other.step(expected_spared[i].item<double>(), g, 3 * lr, 0);
    }
  }
  const double tolerance = dtype == at::kDouble ? 1e-13 : 1e-5;
  CHECK((decayed.detach().to(at::kDouble) - expected_decayed).abs().max().item<double>() < tolerance);
  CHECK((spared.detach().to(at::kDouble) - expected_spared).abs().max().item<double>() < tolerance);
}

// torch.optim.AdamW of PyTorch 2.11 on the same gradients, with b in a parameter group of its own with lr=0.5 and
// weight_decay=0.
TEST_CASE("three steps of adamw end where PyTorch's do") {
  const auto numbers = [](std::vector<double> values) { return at::tensor(values, at::kDouble); };
  at::Tensor w = trained(numbers({1, -2, 0.5, 0.25}).view({2, 2})), b = trained(numbers({0.3, -0.7}));
  const auto optimizer =
      test::optimizer_of("adamw", {{"w", w}, {"b", b, /*lr_factor=*/5, /*decays=*/false}}, kSettings);
  for (int k = 1; k <= 3; ++k) {
    w.mutable_grad() = k * numbers({0.3, 0.1, -0.2, 0}).view({2, 2});
    b.mutable_grad() = numbers({-0.4, 0.6}) / k;
    optimizer->step(at::scalar_tensor(0.1, at::kDouble));
  }
  const auto near = [&](const at::Tensor& got, const std::vector<double>& expected) {
    return at::allclose(got.detach().flatten(), numbers(expected), /*rtol=*/1e-14, /*atol=*/0);
  };
  CHECK(near(w, {0.6514877132208031, -2.1720869481260614, 0.7602999521146285, 0.23529799999999998}));
  CHECK(near(b, {1.6852573831673539, -2.085258823524158}));
  const Optimizer::Named state = optimizer->state();
  REQUIRE(state.size() == 5);
  CHECK(state[0].first == "exp_avg.w");
  CHECK(near(state[0].second, {0.3143999999999999, 0.10479999999999999, -0.20959999999999998, 0}));
  CHECK(state[2].first == "exp_avg_sq.w");
  CHECK(near(state[2].second, {0.06166125000000004, 0.0068512500000000075, 0.02740500000000003, 0}));
  CHECK(state[4].first == "steps");
  CHECK(state[4].second.item<int64_t>() == 3);
}

TEST_CASE("weights with their channels last take the same steps of adamw") {
  at::manual_seed(3);
  const at::Tensor first = at::randn({4, 3, 3, 3}), gradient = at::randn({4, 3, 3, 3});
  std::vector<at::Tensor> ends;
  for (const auto format : {at::MemoryFormat::Contiguous, at::MemoryFormat::ChannelsLast}) {
    at::Tensor weight = first.contiguous(format).clone().requires_grad_(true);
    const auto optimizer =
        test::optimizer_of("adamw", TrainedParameters{{"conv.weight", weight}}, {"optimizer.weight_decay=0.1"});
    for (int i = 0; i < 2; ++i) {
      weight.mutable_grad() = gradient.contiguous(format);
      optimizer->step(at::scalar_tensor(0.1, at::kDouble));
    }
    ends.push_back(weight.detach());
  }
  CHECK(at::allclose(ends[0], ends[1], /*rtol=*/1e-6, /*atol=*/1e-7));
}

}  // namespace
}  // namespace settrain
