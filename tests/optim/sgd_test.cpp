#include <ATen/ATen.h>
#include <fmt/format.h>

#include "src/core/error.h"
#include "tests/support/catch2.h"
#include "tests/support/optimizers.h"

namespace settrain {
namespace {

at::Tensor parameter(std::vector<double> values) {
  return at::tensor(values, at::kDouble).requires_grad_(true);
}

void set_gradient(at::Tensor& p, std::vector<double> values) {
  p.mutable_grad() = at::tensor(values, at::kDouble);
}

std::unique_ptr<Optimizer> sgd(const TrainedParameters& parameters, double momentum, double decay, bool nesterov) {
  return test::optimizer_of(
      "sgd", parameters,
      {fmt::format("optimizer.momentum={}", momentum), fmt::format("optimizer.weight_decay={}", decay),
       fmt::format("optimizer.nesterov={}", nesterov)});
}

TEST_CASE("two steps follow the update rule written out by hand") {
  const bool nesterov = GENERATE(false, true);
  const double momentum = 0.9, decay = 0.01, lr = 0.5;
  at::Tensor p = parameter({1.0, -2.0});
  const auto optimizer = sgd(TrainedParameters{{"p", p}}, momentum, decay, nesterov);

  double expected[2] = {1.0, -2.0}, velocity[2] = {0, 0};
  const double gradients[2][2] = {{0.3, 0.1}, {-0.2, 0.4}};
  for (const auto& gradient : gradients) {
    set_gradient(p, {gradient[0], gradient[1]});
    optimizer->step(at::scalar_tensor(lr, at::kDouble));
    for (int i = 0; i < 2; ++i) {
      const double g = gradient[i] + decay * expected[i];
      velocity[i] = momentum * velocity[i] + g;
      expected[i] -= lr * (nesterov ? g + momentum * velocity[i] : velocity[i]);
    }
  }
  CHECK(p[0].item<double>() == Approx(expected[0]).epsilon(1e-14));
  CHECK(p[1].item<double>() == Approx(expected[1]).epsilon(1e-14));
  CHECK(optimizer->state()[0].first == "momentum.p");
  CHECK(optimizer->state()[0].second[1].item<double>() == Approx(velocity[1]).epsilon(1e-14));
}

TEST_CASE("without momentum a step is lr times the gradient") {
  at::Tensor p = parameter({1.0});
  const auto optimizer = sgd(TrainedParameters{{"p", p}}, 0, 0, false);
  set_gradient(p, {0.5});
  optimizer->step(at::scalar_tensor(0.5, at::kDouble));
  CHECK(p[0].item<double>() == Approx(0.75).epsilon(1e-15));
}

TEST_CASE("a parameter without a gradient stays as it is") {
  at::Tensor used = parameter({1.0}), unused = parameter({1.0});
  const auto optimizer = sgd(TrainedParameters{{"used", used}, {"unused", unused}}, 0.9, 0.1, true);
  set_gradient(used, {1.0});
  optimizer->step(at::scalar_tensor(0.1, at::kDouble));
  CHECK(unused[0].item<double>() == 1.0);
  CHECK(used[0].item<double>() < 1.0);
  optimizer->zero_grad();
  CHECK_FALSE(used.grad().defined());
}

TEST_CASE("Nesterov without momentum is refused") {
  CHECK_THROWS_AS(sgd({}, 0, 0, true), ConfigError);
}

TEST_CASE("clipping scales all gradients by one factor, and only where their norm is above the bound") {
  std::vector<at::Tensor> parameters = {parameter({0, 0}), parameter({0})};
  set_gradient(parameters[0], {3, 0});
  set_gradient(parameters[1], {4});
  CHECK(clip_gradients(parameters, 10).item<double>() == Approx(5));
  CHECK(parameters[0].grad()[0].item<double>() == 3);
  CHECK(clip_gradients(parameters, 1).item<double>() == Approx(5));
  CHECK(parameters[0].grad()[0].item<double>() == Approx(0.6));
  CHECK(parameters[1].grad()[0].item<double>() == Approx(0.8));
}

}  // namespace
}  // namespace settrain
