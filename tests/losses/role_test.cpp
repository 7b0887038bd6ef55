#include <ATen/ATen.h>

#include <cmath>
#include <functional>
#include <map>

#include "src/core/error.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/gradient_check.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

using Catch::Contains;

constexpr int64_t kRoleClasses = 3;

// 1 sample of class 0 (id 0), 4 of class 1 (ids 1 to 4), 9 of class 2 (ids 5 to 13).
std::unique_ptr<Loss> role(const std::vector<std::string>& settings = {}) {
  std::vector<std::string> all{"k=1"};
  all.insert(all.end(), settings.begin(), settings.end());
  return test::build_loss("role", test::context_of(kRoleClasses), all);
}

at::Tensor theta_of(Loss& loss) {
  return loss.state().at(0).second;
}

LossInput some_input(const at::Tensor& scores) {
  LossInput input = test::input_of(scores, at::tensor({1, 2}, at::kLong));
  input.sample_ids = at::tensor({3, 7}, at::kLong);
  return input;
}

at::Tensor role_scores() {
  return at::tensor({0.5, -1.0, 0.2, 1.5, 0.1, -0.4}, at::kDouble).view({2, 3});
}

TEST_CASE("estimates start near even odds, but for the known label") {
  const auto loss = role();
  const at::Tensor theta = theta_of(*loss);
  REQUIRE(theta.sizes() == at::IntArrayRef({14, kRoleClasses}));
  const at::Tensor known = at::zeros({14, kRoleClasses}, at::kBool);
  for (int64_t i = 0; i < 14; ++i) known[i][i == 0 ? 0 : i < 5 ? 1 : 2] = true;
  CHECK(test::near(theta.masked_select(known), at::full({14}, std::log(0.995 / 0.005)).to(at::kFloat)));
  const at::Tensor unknown = theta.masked_select(known.logical_not());
  CHECK(unknown.abs().max().item<double>() <= std::log(1.5));
  CHECK(unknown.max().item<double>() > 0.2);
  CHECK(unknown.min().item<double>() < -0.2);
  CHECK(at::equal(theta, theta_of(*role())));

  LossContext other_seed = test::context_of(kRoleClasses);
  other_seed.seed = 5;
  CHECK_FALSE(at::equal(theta, theta_of(*test::build_loss("role", other_seed, {"k=1"}))));
}

TEST_CASE("a sample's estimates do not depend on which others are in the training split") {
  LossContext some = test::context_of(kRoleClasses);
  some.train_ids = {7, 3};
  some.train_labels = {2, 1};
  const at::Tensor theta = theta_of(*test::build_loss("role", some, {"k=1"}));
  CHECK(at::equal(theta[0], theta_of(*role())[7]));
  CHECK(at::equal(theta[1], theta_of(*role())[3]));
}

TEST_CASE("gradients are those of the formula with its targets held fixed") {
  const double lambda = 0.7, k = 1, classes = kRoleClasses;
  const auto loss = role({"lambda=0.7"});
  const at::Tensor label = at::one_hot(at::tensor({1, 2}, at::kLong), kRoleClasses).to(at::kDouble);
  at::manual_seed(1);
  const at::Tensor estimates = at::randn({2, 3}, at::kDouble);
  const auto value = [&](const at::Tensor& s, const at::Tensor& t, const at::Tensor& f, const at::Tensor& g) {
    const at::Tensor log_f = at::log_sigmoid(s), log_g = at::log_sigmoid(t);
    const at::Tensor terms = -label * (log_f + log_g) - g * log_f - (1 - g) * at::log_sigmoid(-s) - f * log_g -
                             (1 - f) * at::log_sigmoid(-t);
    const auto r = [&](const at::Tensor& p) { return ((p.sum() / 2 - k) / classes).square(); };
    return terms.sum() / (2 * classes * 2) + lambda / 2 * (r(s.sigmoid()) + r(t.sigmoid()));
  };
  const at::Tensor f = role_scores().sigmoid(), g = estimates.sigmoid();

  LossInput input = some_input(role_scores().requires_grad_());
  input.estimate_logits = estimates.clone().requires_grad_();
  const LossValue got = (*loss)(input);
  got.mean().backward();
  CHECK(test::near(got.mean(), value(role_scores(), estimates, f, g)));
  const auto by_scores = [&](const at::Tensor& s) { return value(s, estimates, f, g); };
  const auto by_estimates = [&](const at::Tensor& t) { return value(role_scores(), t, f, g); };
  REQUIRE(test::gradient_error(by_scores, role_scores()) < 1e-10);
  REQUIRE(test::gradient_error(by_estimates, estimates) < 1e-10);
  CHECK(test::near(input.output.scores.grad(), test::gradient_of(by_scores, role_scores())));
  CHECK(test::near(input.estimate_logits->grad(), test::gradient_of(by_estimates, estimates)));
}

TEST_CASE("an update moves the rows of the step's samples by their gradients, and no others") {
  const auto loss = role({"theta_lr=50"});
  const at::Tensor before = theta_of(*loss).clone();
  LossInput reference = some_input(role_scores());
  reference.estimate_logits = at::stack({before[3], before[7]}).to(at::kDouble).requires_grad_();
  (*role())(reference).mean().backward();

  (*loss)(some_input(role_scores().requires_grad_())).mean().backward();
  loss->update(/*lr=*/0.1, /*schedule_factor=*/1);
  const at::Tensor moved = theta_of(*loss) - before;
  const at::Tensor expected = at::zeros({14, kRoleClasses}, at::kDouble);
  expected[3] = -5 * reference.estimate_logits->grad()[0];
  expected[7] = -5 * reference.estimate_logits->grad()[1];
  CHECK(expected.abs().max().item<double>() > 0.1);
  CHECK(test::near(moved, expected));

  const at::Tensor after = theta_of(*loss).clone();
  loss->update(0.1, 1);  // nothing has been taken since
  CHECK(at::equal(theta_of(*loss), after));
}

// The gradients of the estimates of samples 3 and 7 in the first step from `theta`, float64.
at::Tensor estimate_gradients(const at::Tensor& theta) {
  LossInput reference = some_input(role_scores());
  reference.estimate_logits = at::stack({theta[3], theta[7]}).to(at::kDouble).requires_grad_();
  (*role())(reference).mean().backward();
  return reference.estimate_logits->grad();
}

// Takes `steps` steps at the network's rate 0.1, of which half is the schedule's factor, and returns the estimates of
// samples 3 and 7 after each; `expect` moves them by a gradient, the step's number from 1 and the rate `lr`.
void check_estimate_steps(const std::vector<std::string>& settings, double lr,
                          const std::function<at::Tensor(const at::Tensor& gradient, int64_t step)>& direction) {
  const auto loss = role(settings);
  at::Tensor expected = theta_of(*loss).to(at::kDouble, /*non_blocking=*/false, /*copy=*/true);
  const at::Tensor start = expected.clone(), rows = at::tensor({3, 7}, at::kLong);
  for (int64_t step = 1; step <= 4; ++step) {
    expected.index_add_(0, rows, direction(estimate_gradients(expected), step), -lr);
    (*loss)(some_input(role_scores().requires_grad_())).mean().backward();
    loss->update(0.1, 0.5);
    CHECK(test::near(theta_of(*loss), expected.to(at::kFloat)));
  }
  const at::Tensor moved = (expected - start).abs();
  CHECK(moved.index_select(0, rows).min().item<double>() > 1e-4);
  CHECK(moved.sum().item<double>() == moved.index_select(0, rows).sum().item<double>());
}

TEST_CASE("the estimates' optimizer is PyTorch's SGD or Adam on the rows of a step, at a rate of its own") {
  at::Tensor m = at::zeros({2, kRoleClasses}, at::kDouble), v = m.clone();
  const auto momentum = [&](const at::Tensor& g, int64_t) { return m = 0.8 * m + g; };
  check_estimate_steps({"theta_optimizer.momentum=0.8", "theta_lr=50"}, 0.1 * 50, momentum);
  m.zero_();
  check_estimate_steps({"theta_optimizer.momentum=0.8", "theta_optimizer.lr=12"}, 12 * 0.5, momentum);
  m.zero_();
  const auto nesterov = [&](const at::Tensor& g, int64_t) {
    m = 0.8 * m + g;
    return g + 0.8 * m;
  };
  check_estimate_steps({"theta_optimizer.momentum=0.8", "theta_optimizer.nesterov=true", "theta_optimizer.lr=12"}, 6,
                       nesterov);
  m.zero_();
  const auto adam = [&](const at::Tensor& g, int64_t step) {
    const auto t = static_cast<double>(step);
    m = 0.7 * m + 0.3 * g;
    v = 0.9 * v + 0.1 * g * g;
    return m / (1 - std::pow(0.7, t)) / ((v / (1 - std::pow(0.9, t))).sqrt() + 1e-8);
  };
  check_estimate_steps(
      {"theta_optimizer.name=adam", "theta_optimizer.beta1=0.7", "theta_optimizer.beta2=0.9", "theta_optimizer.lr=0.4"},
      0.2, adam);
}

TEST_CASE("a row's moments are its own: a step without the sample leaves it alone") {
  const auto loss = role({"theta_optimizer.name=adam", "theta_optimizer.lr=0.1"});
  const auto step = [&](int64_t id) {
    LossInput input = test::input_of(role_scores().slice(0, 0, 1).clone().requires_grad_(), at::tensor({1}, at::kLong));
    input.sample_ids = at::full({1}, id, at::kLong);
    (*loss)(input).mean().backward();
    loss->update(1, 1);
  };
  step(3);
  const at::Tensor after = theta_of(*loss)[3].clone();
  for (int i = 0; i < 5; ++i) step(2);
  CHECK(at::equal(theta_of(*loss)[3], after));
  std::map<std::string, at::Tensor> state;
  for (const auto& [name, tensor] : loss->state()) state[name] = tensor;
  CHECK(state.at("theta_steps")[3].item<int64_t>() == 1);
  CHECK(state.at("theta_steps")[2].item<int64_t>() == 5);
  CHECK(state.at("theta_steps").sum().item<int64_t>() == 6);
  // The first step of Adam is one learning rate for every entry, however small its gradient.
  CHECK(((theta_of(*role())[3] - after).abs() - 0.1).abs().max().item<double>() < 1e-4);
}

TEST_CASE("a sample that a step takes twice moves once, by the sum of its gradients") {
  const auto twice = [](const std::vector<std::string>& settings, bool apart) {
    const auto loss = role(settings);
    const at::Tensor two = role_scores();
    for (int64_t i = 0; i < 2; ++i) {
      if (!apart && i > 0) break;
      LossInput input = apart
                            ? test::input_of(two.slice(0, i, i + 1).clone().requires_grad_(), at::ones({1}, at::kLong))
                            : test::input_of(two.clone().requires_grad_(), at::ones({2}, at::kLong));
      input.sample_ids = at::full({apart ? 1 : 2}, 3, at::kLong);
      (*loss)(input).sum.backward();
    }
    loss->update(1, 1);
    return theta_of(*loss)[3].clone();
  };
  const std::vector<std::string> adam{"theta_optimizer.name=adam", "theta_optimizer.lr=0.1"};
  CHECK(test::near(twice({}, true), twice({}, false)));
  CHECK(test::near(twice(adam, true), twice(adam, false)));
}

TEST_CASE("keys of the other optimizer are refused") {
  const std::string path = "loss.theta_optimizer.";
  CHECK_THROWS_WITH(role({"theta_optimizer.beta1=0.5"}), Contains(path + "beta1") && Contains("adam"));
  CHECK_THROWS_WITH(role({"theta_optimizer.name=adam", "theta_optimizer.momentum=0.5"}),
                    Contains(path + "momentum") && Contains("sgd"));
  CHECK_THROWS_WITH(role({"theta_optimizer.nesterov=true"}), Contains(path + "momentum"));
  CHECK_THROWS_WITH(role({"theta_optimizer.lr=0.1", "theta_lr=2"}), Contains("loss.theta_lr"));
  CHECK_THROWS_WITH(role({"theta_optimizer.name=adamw"}), Contains(path + "name") && Contains("adam"));
}

TEST_CASE("scale multiplies the gradients, which stay below scale/(2LB) for estimates other than the label's") {
  // The network is sure of all classes of the first sample, and that the second has none.
  const at::Tensor scores = at::tensor({50.0, 50.0, 50.0, -50.0, -50.0, -50.0}, at::kDouble).view({2, 3});
  const at::Tensor estimates = at::tensor({0.3, 5.3, -0.4, -0.2, 0.1, 5.3}, at::kDouble).view({2, 3});
  const auto gradient = [&](const char* scale) {
    LossInput input = some_input(scores.clone().requires_grad_());
    input.estimate_logits = estimates.clone().requires_grad_();
    (*role({scale}))(input).mean().backward();
    return at::cat({input.output.scores.grad(), input.estimate_logits->grad()});
  };
  const at::Tensor plain = gradient("scale=1");
  CHECK(test::near(gradient("scale=100"), 100 * plain));
  const at::Tensor others = at::stack({plain[2][0], plain[2][2], plain[3][0], plain[3][1]}).abs();
  const double bound = 1.0 / (2 * kRoleClasses * 2);
  CHECK(others.max().item<double>() < bound);
  CHECK(others.min().item<double>() > 0.4 * bound);
}

TEST_CASE("a sample that is not in training is named") {
  LossInput input = some_input(role_scores());
  input.sample_ids = at::tensor({3, 99}, at::kLong);
  CHECK_THROWS_WITH((*role())(input), Contains("sample_ids[1]") && Contains("99"));
  input.sample_ids = at::zeros({1}, at::kLong);
  CHECK_THROWS_AS((*role())(input), ShapeError);
  CHECK_THROWS_WITH(role({"k=3"}), Contains("loss.k") && Contains("got 3"));
}

}  // namespace
}  // namespace settrain
