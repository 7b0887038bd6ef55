#include "metrics/sets/temperature.h"

#include <ATen/ATen.h>

#include <cmath>
#include <limits>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

// Two classes whose scores differ by `gap`; of 100 images `right` have the better class' label.
std::pair<at::Tensor, at::Tensor> two_classes(double gap, int64_t right) {
  const at::Tensor scores = at::tensor({gap, 0.0}, at::kDouble).repeat({100, 1});
  return {scores, at::cat({at::zeros({right}, at::kLong), at::ones({100 - right}, at::kLong)})};
}

}  // namespace

TEST_CASE("the temperature makes probabilities as large as the share of right answers") {
  // sigmoid(6 / T) = 0.75 where 6 / T = log 3.
  const auto [scores, labels] = two_classes(6, 75);
  CHECK(fit_temperature(scores, labels).temperature == Approx(6 / std::log(3.0)).epsilon(1e-12));
  CHECK(fit_temperature(scores, labels).refused.empty());
  CHECK(fit_temperature(scores.to(at::kFloat), labels).temperature == Approx(6 / std::log(3.0)).epsilon(1e-6));
  const auto [doubtful, their_labels] = two_classes(0.5, 90);
  CHECK(fit_temperature(doubtful, their_labels).temperature == Approx(0.5 / std::log(9.0)).epsilon(1e-12));
}

TEST_CASE("finite scores stay finite at any temperature") {
  const float least = std::numeric_limits<float>::lowest(), infinity = std::numeric_limits<float>::infinity();
  const at::Tensor scores = at::tensor({least, 1.0F, -infinity, -least});
  CHECK(at_temperature(scores, 0.5).equal(at::tensor({least, 2.0F, -infinity, -least})));
  CHECK(at_temperature(scores.to(at::kDouble), 0.5)[0].item<double>() == 2.0 * least);
}

TEST_CASE("a temperature is refused where the likelihood has no maximum, and is then 1") {
  const auto check_refused = [](const std::pair<at::Tensor, at::Tensor>& images, const std::string& reason) {
    const TemperatureFit fit = fit_temperature(images.first, images.second);
    CHECK(fit.temperature == 1);
    CHECK_THAT(fit.refused, Catch::Contains(reason));
  };
  check_refused(two_classes(1, 100), "the largest score");
  check_refused(two_classes(1, 50), "not above the mean");  // as good as guessing
  check_refused(two_classes(1, 0), "not above the mean");
  check_refused({at::full({9, 3}, 0.1), at::zeros({9}, at::kLong)}, "are equal");
  // Equal within each image is enough, and a tie for the largest score is a largest score.
  check_refused({at::arange(5, at::kDouble).unsqueeze(1).repeat({1, 3}), at::arange(5).remainder(3)}, "are equal");
  check_refused({at::tensor({2.0, 2.0, 0.0}).view({1, 3}), at::ones({1}, at::kLong)}, "the largest score");
  check_refused({at::randn({1, 1}), at::zeros({1}, at::kLong)}, "are equal");
  // sigmoid(gap / T) = 0.75 lies outside of the range.
  check_refused(two_classes(1e-5, 75), "below 0.001");
  check_refused(two_classes(1e5, 75), "above 1000");
}

TEST_CASE("a temperature within its range is taken, however near to an end and however large the scores") {
  const auto [small, labels] = two_classes(1.2e-3, 75);
  CHECK(fit_temperature(small, labels).temperature == Approx(1.2e-3 / std::log(3.0)).epsilon(1e-9));
  const auto [large, more_labels] = two_classes(1e3, 75);
  CHECK(fit_temperature(large, more_labels).temperature == Approx(1e3 / std::log(3.0)).epsilon(1e-9));
  // One common summand changes no probability.
  CHECK(fit_temperature(large + 1e9, more_labels).temperature == Approx(1e3 / std::log(3.0)).epsilon(1e-6));
  // One wrong answer of many is enough for a maximum.
  const auto [sure, nearly_right] = two_classes(1, 99);
  CHECK(fit_temperature(sure, nearly_right).temperature == Approx(1 / std::log(99.0)).epsilon(1e-9));
}

TEST_CASE("the calibration error is the difference of probabilities and right answers, by bins") {
  const auto [scores, labels] = two_classes(std::log(3.0), 60);  // probability 0.75
  CHECK(expected_calibration_error(scores, labels) == Approx(0.15));
  CHECK(expected_calibration_error(scores, labels, 1) == Approx(0.15));
  // In one bin two errors cancel each other; in bins of their own they add up.
  const auto [surer, surer_labels] = two_classes(std::log(19.0), 100);  // probability 0.95, all right
  const at::Tensor both = at::cat({scores, surer}), both_labels = at::cat({labels, surer_labels});
  CHECK(expected_calibration_error(both, both_labels, 1) == Approx(0.05));
  CHECK(expected_calibration_error(both, both_labels) == Approx((0.15 + 0.05) / 2));
}

namespace {

// [images] the summed probabilities of the classes up to the label, from the most probable one on.
at::Tensor aps_of_labels(const SplitScores& split, double temperature) {
  const at::Tensor p = at::softmax(split.scores / temperature, 1);
  const at::Tensor of_label = p.gather(1, split.labels.unsqueeze(1));
  return p.mul(p.ge(of_label)).sum(1);
}

SplitScores sure_images(int64_t images, uint64_t seed) {
  at::manual_seed(seed);
  const at::Tensor scores = at::randn({images, 10}, at::kDouble).mul(4);
  return {scores, at::multinomial(at::softmax(scores / 3, 1), 1).squeeze(1)};
}

}  // namespace

TEST_CASE("the temperature for small sets brings the labels' scores of aps near their threshold") {
  const SplitScores first = sure_images(199, 1), second = sure_images(300, 2);
  const auto loss = [&](double temperature) {
    const at::Tensor known = std::get<0>(aps_of_labels(first, temperature).sort());
    return aps_of_labels(second, temperature).sub(known[179]).square().sum().item<double>();  // ceil(200 * 0.9)-th
  };
  const double found = efficient_temperature(first, second, 0.1);
  for (double other = 0.03; other < 45; other *= 1.07) {
    CAPTURE(found, other);
    CHECK(loss(found) <= loss(other) * (1 + 1e-6));
  }
  CHECK_THROWS_WITH(efficient_temperature(first, second, 0.001), Catch::Contains("needs 999 images"));
}

}  // namespace settrain
