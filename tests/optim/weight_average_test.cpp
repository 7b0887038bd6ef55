#include "src/optim/weight_average.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("the average follows the weights as its formula says") {
  for (const bool warmup : {true, false}) {
    CAPTURE(warmup);
    const at::Tensor weight = at::full({2}, 1.0, at::kDouble), counter = at::full({}, 5, at::kLong);
    WeightAverage average({{"weight", weight}, {"counter", counter}}, 0.25, warmup);
    double expected = 1;
    for (int64_t step = 0; step < 4; ++step) {
      weight.fill_(static_cast<double>(10 * step));
      counter.add_(1);
      average.update(step);
      const double t = static_cast<double>(step + 1), d = warmup ? std::min(0.25, (1 + t) / (10 + t)) : 0.25;
      expected += (1 - d) * (10 * static_cast<double>(step) - expected);
      CHECK(average.tensors()[0].second[1].item<double>() == Approx(expected).epsilon(1e-12));
    }
    CHECK(average.tensors()[1].second.item<int64_t>() == 9);
    CHECK(weight[0].item<double>() == 30);
  }
}

TEST_CASE("the average stands in for the weights and leaves them as they were") {
  const at::Tensor weight = at::zeros({3}).requires_grad_(true);
  WeightAverage average({{"weight", weight}}, 0.9, true);
  {
    c10::NoGradGuard no_grad;
    weight.fill_(1);
  }
  average.update(0);
  const at::Tensor mean = average.tensors()[0].second.clone();
  {
    const WeightAverage::InPlace averaged(average);
    CHECK(at::equal(weight.detach(), mean));
    CHECK(mean[0].item<float>() < 1);
  }
  CHECK(at::equal(weight.detach(), at::ones({3})));
  CHECK(at::equal(average.tensors()[0].second, mean));
}

}  // namespace
}  // namespace settrain
