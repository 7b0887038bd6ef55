#include "src/probe/probe.h"

#include <algorithm>
#include <cmath>

#include "src/core/error.h"
#include "tests/probe/golden.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

ProbeReport probed(const ProbeData& data, const ProbeOptions& options) {
  ProgressBar bar(no_progress_output());
  return probe_features(data, options, bar);
}

ProbeData golden_data() {
  const nlohmann::json golden = test::probe_golden();
  return {
      .train = test::features_of(golden, "train"), .test = test::features_of(golden, "test"), .val = {}, .classes = 4};
}

double share_right(const nlohmann::json& predicted, const ProbeData& data) {
  return test::labels_of(predicted).eq(data.test.labels).mean(at::kDouble).item<double>();
}

TEST_CASE("a report has scikit-learn's accuracies") {
  const nlohmann::json golden = test::probe_golden();
  const ProbeData data = golden_data();
  const ProbeReport report = probed(data, {.neighbours = 7, .c = {1}});
  REQUIRE(report.results.size() == 4);
  const auto& euclidean = golden.at("neighbours");
  CHECK(report.results[0].top1 == share_right(euclidean.at(0).at("predicted"), data));
  CHECK(std::isnan(report.results[0].top5));
  CHECK(report.results[1].top1 == share_right(euclidean.at(1).at("predicted"), data));
  CHECK(report.results[2].top1 == share_right(golden.at("class_means"), data));
  const double logistic = share_right(golden.at("logistic").at(1).at("predicted"), data);
  CHECK(std::abs(report.results[3].top1 - logistic) < 1.5 / 40);
  CHECK(report.results[3].top5 == 1);
  CHECK(report.logistic.accuracy.empty());
}

TEST_CASE("C is chosen on the validation images, and of equal ones the smallest") {
  ProbeData data = golden_data();
  data.val = data.test;
  const ProbeReport report = probed(data, {.c = {100, 1e-9, 2e-9, 1}});
  const ChosenC& chosen = report.logistic;
  CHECK(chosen.on_val);
  CHECK(chosen.tried == std::vector<double>{1e-9, 2e-9, 1, 100});
  const auto best = std::ranges::max_element(chosen.accuracy);  // the first of equals
  CHECK(chosen.c == chosen.tried[best - chosen.accuracy.begin()]);
  CHECK(report.results[3].top1 == *best);  // the same images judge here
}

TEST_CASE("without validation images a tenth of the training images chooses C, and all are fitted") {
  const ProbeData data = golden_data();
  const ProbeReport report = probed(data, {.c = {0.1, 10}});
  CHECK_FALSE(report.logistic.on_val);
  for (const double share : report.logistic.accuracy) CHECK(std::abs(share * 7 - std::round(share * 7)) < 1e-9);
  const ProbeReport alone = probed(data, {.c = {report.logistic.c}});
  CHECK(std::abs(alone.logistic.objective - report.logistic.objective) < 1e-5 * alone.logistic.objective);
}

TEST_CASE("training images that allow no regression are refused") {
  ProbeData data = golden_data();
  data.train = {data.train.features.narrow(0, 0, 4), at::arange(4)};
  CHECK_THROWS_AS(probed(data, {.c = {1, 2}}), DataError);
  CHECK_NOTHROW(probed(data, {.c = {1}}));
  data.train.labels = at::zeros({4}, at::kLong);
  CHECK_THROWS_AS(probed(data, {.c = {1}}), DataError);
}

}  // namespace
}  // namespace settrain
