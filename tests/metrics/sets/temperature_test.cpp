#include "metrics/sets/temperature.h"

#include <ATen/ATen.h>

#include <catch2/catch.hpp>
#include <cmath>

namespace settrain {
namespace {

// Two classes whose scores differ by `gap`; of 100 images `right` have the better class' label.
std::pair<at::Tensor, at::Tensor> two_classes(double gap, int64_t right) {
  const at::Tensor scores = at::tensor({gap, 0.0}, at::kDouble).repeat({100, 1});
  return {scores, at::cat({at::zeros({right}, at::kLong), at::ones({100 - right}, at::kLong)})};
}

}  // namespace

TEST_CASE("the temperature makes probabilities as large as the share of right answers", "[fast]") {
  // sigmoid(6 / T) = 0.75 where 6 / T = log 3.
  const auto [scores, labels] = two_classes(6, 75);
  CHECK(fit_temperature(scores, labels) == Approx(6 / std::log(3.0)).epsilon(1e-12));
  CHECK(fit_temperature(scores.to(at::kFloat), labels) == Approx(6 / std::log(3.0)).epsilon(1e-6));
  const auto [doubtful, their_labels] = two_classes(0.5, 90);
  CHECK(fit_temperature(doubtful, their_labels) == Approx(0.5 / std::log(9.0)).epsilon(1e-12));
}

TEST_CASE("the temperature stays in its range where every answer is right", "[fast]") {
  const auto [scores, labels] = two_classes(1, 100);
  CHECK(fit_temperature(scores, labels) == Approx(1e-3));
}

TEST_CASE("the calibration error is the difference of probabilities and right answers, by bins", "[fast]") {
  const auto [scores, labels] = two_classes(std::log(3.0), 60);  // probability 0.75
  CHECK(expected_calibration_error(scores, labels) == Approx(0.15));
  CHECK(expected_calibration_error(scores, labels, 1) == Approx(0.15));
  // In one bin two errors cancel each other; in bins of their own they add up.
  const auto [surer, surer_labels] = two_classes(std::log(19.0), 100);  // probability 0.95, all right
  const at::Tensor both = at::cat({scores, surer}), both_labels = at::cat({labels, surer_labels});
  CHECK(expected_calibration_error(both, both_labels, 1) == Approx(0.05));
  CHECK(expected_calibration_error(both, both_labels) == Approx((0.15 + 0.05) / 2));
}

}  // namespace settrain
