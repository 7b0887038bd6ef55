
#include "src/measure/check/tolerance.h"
#include "src/train/run_options.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/train/linear_task.h"

namespace settrain {
namespace {

TEST_CASE("steps on a GPU are those on the CPU, noise included", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  for (const char* name : {"cross_entropy", "noised_topk"}) {
    std::vector<at::Tensor> weights;
    for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA)}) {
      auto model = test::fresh_model();
      model->to(device);
      auto loss = test::make_loss(name);
      const auto optimizer = test::make_optimizer(*model);
      StepResult sum;
      for (int64_t step = 0; step < 5; ++step) {
        sum += test::train_step(*model, *loss, *optimizer, {test::samples(0, 5), test::samples(5, 3)},
                                ComputePolicy{device}, {1, step, 0.1, /*clip_norm=*/0.5});
      }
      CHECK(sum.count == 40);
      weights.push_back(model->parameters()[0].detach().cpu());
    }
    CAPTURE(name);
    CHECK((weights[0] - weights[1]).abs().max().item<double>() <= tolerance(at::kCUDA, at::kDouble));
  }
}

TEST_CASE("steps on a GPU measure what those on the CPU do", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  TrainOptions options;
  options.top_k = {2, 3};
  options.gradient_nonzeros = true;
  const StepMetrics metrics(options);
  for (const char* name : {"cross_entropy", "noised_topk"}) {
    std::vector<std::vector<double>> measured;
    for (const at::Device device : {at::Device(at::kCPU), at::Device(at::kCUDA)}) {
      auto model = test::fresh_model();
      model->to(device);
      auto loss = test::make_loss(name);
      const auto optimizer = test::make_optimizer(*model);
      test::OneStep settings{1, 0, 0.1, 0};
      settings.metrics = metrics;
      measured.push_back(
          test::train_step(*model, *loss, *optimizer, {test::samples(0, 8)}, ComputePolicy{device}, settings).measured);
    }
    CAPTURE(name);
    CHECK(measured[0] == measured[1]);
  }
}

}  // namespace
}  // namespace settrain
