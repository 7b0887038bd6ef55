#include <ATen/ATen.h>

#include <cmath>

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
  loss->update(/*lr=*/0.1);
  const at::Tensor moved = theta_of(*loss) - before;
  const at::Tensor expected = at::zeros({14, kRoleClasses}, at::kDouble);
  expected[3] = -5 * reference.estimate_logits->grad()[0];
  expected[7] = -5 * reference.estimate_logits->grad()[1];
  CHECK(expected.abs().max().item<double>() > 0.1);
  CHECK(test::near(moved, expected));

  const at::Tensor after = theta_of(*loss).clone();
  loss->update(0.1);  // nothing has been taken since
  CHECK(at::equal(theta_of(*loss), after));
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
