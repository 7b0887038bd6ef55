#include <ATen/ATen.h>

#include <barrier>
#include <thread>

#include "models/layers.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

// Two threads that add their tensors, each in the order of their numbers.
class TwoSums {
 public:
  SumOverProcesses of(size_t number) {
    return [this, number](const at::Tensor& mine) {
      all_[number] = mine.detach().clone();
      barrier_.arrive_and_wait();
      const at::Tensor sum = all_[0] + all_[1];
      barrier_.arrive_and_wait();
      return sum;
    };
  }

 private:
  std::barrier<> barrier_{2};
  std::array<at::Tensor, 2> all_;
};

TEST_CASE("batch norm over two processes is that of their batches together") {
  const BatchNormOptions options = GENERATE(BatchNormOptions{}, BatchNormOptions{.epsilon = 0.5, .momentum = 0.3});
  at::manual_seed(3);
  const at::Tensor x = at::randn({7, 5, 3, 2}) * 3 + 10, weights = at::randn({7, 5, 3, 2});
  at::Tensor whole_x = x.clone().requires_grad_();
  BatchNorm whole(5, options);
  const at::Tensor whole_y = whole.forward(whole_x);
  (whole_y * weights).sum().backward();

  TwoSums sums;
  std::array<at::Tensor, 2> xs{x.slice(0, 0, 4).clone().requires_grad_(), x.slice(0, 4).clone().requires_grad_()};
  std::array<at::Tensor, 2> ys, means{at::zeros({5}), at::zeros({5})}, variances{at::zeros({5}), at::zeros({5})},
      slopes;
  const auto process = [&](size_t number) {
    BatchNorm half(5, options);
    half.record_in(means[number], variances[number]);
    half.share_statistics(sums.of(number));
    ys[number] = half.forward(xs[number]);
    const at::Tensor own = number == 0 ? weights.slice(0, 0, 4) : weights.slice(0, 4);
    (ys[number] * own).sum().backward();
    slopes[number] = half.named_parameters()["weight"].grad();
  };
  std::thread other(process, 1);
  process(0);
  other.join();

  CHECK(at::allclose(at::cat({ys[0], ys[1]}), whole_y, 1e-4, 1e-5));
  CHECK(at::allclose(at::cat({xs[0].grad(), xs[1].grad()}), whole_x.grad(), 1e-4, 1e-5));
  CHECK(at::allclose(slopes[0] + slopes[1], whole.named_parameters()["weight"].grad(), 1e-4, 1e-4));
  CHECK(means[0].equal(means[1]));
  whole.update(means[0], variances[0]);  // a second time: both updates are the same
  BatchNorm twice(5, options);
  twice.forward(x);
  twice.forward(x);
  CHECK(at::allclose(whole.named_buffers()["running_mean"], twice.named_buffers()["running_mean"]));
  CHECK(at::allclose(whole.named_buffers()["running_var"], twice.named_buffers()["running_var"]));
}

}  // namespace
}  // namespace settrain
