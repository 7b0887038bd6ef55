#include "src/probe/logistic.h"

#include <cmath>
#include <stdexcept>

#include "tests/probe/golden.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

LogisticFit fit(const LogisticObjective& objective, double c, double tolerance = 1e-6) {
  return fit_logistic(objective, {.c = c, .tolerance = tolerance}, objective.zeros(), [](int64_t, double) {});
}

TEST_CASE("the gradient of logistic regression is that of its objective") {
  at::manual_seed(1);
  const LogisticObjective objective(at::randn({30, 4}, at::kDouble) * 2 + 3, at::arange(30).remainder(3), 3);
  const at::Tensor at_point = at::randn({3, 5}, at::kDouble);
  at::Tensor gradient = objective.zeros(), unused = objective.zeros();
  const double c = 0.7, step = 1e-5;
  objective.evaluate(at_point, c, gradient);
  for (int64_t i = 0; i < at_point.numel(); ++i) {
    at::Tensor above = at_point.clone(), below = at_point.clone();
    above.view({-1})[i] += step;
    below.view({-1})[i] -= step;
    const double slope = (objective.evaluate(above, c, unused) - objective.evaluate(below, c, unused)) / (2 * step);
    CAPTURE(i);
    CHECK(std::abs(gradient.view({-1})[i].item<double>() - slope) < 1e-6 * (1 + std::abs(slope)));
  }
}

TEST_CASE("logistic regression reaches scikit-learn's minimum and predictions") {
  const nlohmann::json golden = test::probe_golden();
  const LabelledFeatures train = test::features_of(golden, "train"), test = test::features_of(golden, "test");
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    const LogisticObjective objective(test::matrix_of(golden.at("train")).to(dtype), train.labels, 4);
    for (const auto& expected : golden.at("logistic")) {
      const double minimum = expected.at("objective");
      const LogisticFit found = fit(objective, expected.at("c"));
      CAPTURE(dtype, expected.at("c").get<double>(), found.objective, minimum, found.iterations);
      CHECK(found.has_converged);
      CHECK(std::abs(found.objective - minimum) < 1e-5 * minimum);
      const at::Tensor predicted = objective.logits(found.parameters, test.features.to(dtype)).argmax(1);
      CHECK(predicted.ne(test::labels_of(expected.at("predicted"))).sum().item<int64_t>() <= 1);
    }
  }
}

TEST_CASE("two classes have half of scikit-learn's C") {
  const nlohmann::json golden = test::probe_golden();
  const LabelledFeatures train = test::features_of(golden, "train"), test = test::features_of(golden, "test");
  const at::Tensor chosen = train.labels.lt(2).nonzero().view({-1});
  const LogisticObjective objective(train.features.index_select(0, chosen), train.labels.index_select(0, chosen), 2);
  const nlohmann::json& expected = golden.at("two_classes");
  const LogisticFit found = fit(objective, expected.at("c"));
  const double minimum = expected.at("objective");
  CHECK(std::abs(found.objective - minimum) < 1e-5 * minimum);
  const at::Tensor asked = test.features.index_select(0, test.labels.lt(2).nonzero().view({-1}));
  CHECK(objective.logits(found.parameters, asked).argmax(1).equal(test::labels_of(expected.at("predicted"))));
}

TEST_CASE("the minimum does not depend on the start, and a start at the minimum ends at once") {
  const nlohmann::json golden = test::probe_golden();
  const LabelledFeatures train = test::features_of(golden, "train");
  const LogisticObjective objective(train.features.to(at::kDouble), train.labels, 4);
  const LogisticFit first = fit(objective, 1, 1e-10);
  const LogisticSearch search{.c = 1, .tolerance = 1e-8};
  const LogisticFit again = fit_logistic(objective, search, first.parameters, [](int64_t, double) {});
  CHECK(again.iterations == 0);
  const LogisticFit other = fit_logistic(objective, search, first.parameters * -3, [](int64_t, double) {});
  CHECK(std::abs(other.objective - first.objective) < 1e-6 * first.objective);
}

TEST_CASE("a search that is cut says so, and an exception of its watcher ends it") {
  at::manual_seed(2);
  const LogisticObjective objective(at::randn({50, 5}), at::arange(50).remainder(5), 5);
  const LogisticFit cut = fit_logistic(objective, {.c = 10, .tolerance = 1e-9, .most_iterations = 2}, objective.zeros(),
                                       [](int64_t, double) {});
  CHECK(cut.iterations == 2);
  CHECK_FALSE(cut.has_converged);
  const auto stop = [](int64_t, double) { throw std::runtime_error("stop"); };
  CHECK_THROWS(fit_logistic(objective, {.c = 10}, objective.zeros(), stop));
}

TEST_CASE("features that are constant, huge or alike still give a minimum") {
  at::manual_seed(3);
  at::Tensor features = at::randn({60, 5});
  features.select(1, 1).fill_(7);
  features.select(1, 2).copy_(features.select(1, 0));
  features.select(1, 3).mul_(1e4);
  const LogisticObjective objective(features, at::arange(60).remainder(3), 3);
  const LogisticObjective in_doubles(features.to(at::kDouble), at::arange(60).remainder(3), 3);
  for (const double c : {1e-6, 1.0, 1e4}) {
    const LogisticFit found = fit(objective, c), exact = fit(in_doubles, c, 1e-9);
    CAPTURE(c, found.objective, exact.objective);
    CHECK(std::abs(found.objective - exact.objective) < 1e-4 * exact.objective);
  }
}

}  // namespace
}  // namespace settrain
