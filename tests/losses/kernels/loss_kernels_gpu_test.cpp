// The CUDA kernels of the losses against those of the CPU.
#include <ATen/ATen.h>

#include <string>
#include <vector>

#include "losses/ops/loss_kernels.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/tolerance.h"

#if defined(SETTRAIN_HAS_CUDA)
#include <ATen/cuda/CUDAGraph.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#endif

namespace settrain {
namespace {

struct GpuResult {
  at::Tensor losses, gradient;
};

GpuResult compute(const std::string& name, const std::vector<std::string>& settings, const at::Tensor& scores,
                  LossMethod method = LossMethod::kFast) {
  const auto loss = test::build_loss(name, test::context_of(scores.size(1)), settings);
  const at::Tensor leaf = scores.detach().clone().requires_grad_();
  LossInput input = test::input_of(leaf, at::arange(scores.size(0), at::kLong).to(scores.device()));
  input.method = method;
  const LossValue value = (*loss)(input);
  value.sum.backward();
  return {value.per_sample.detach().cpu(), leaf.grad().cpu()};
}

TEST_CASE("this build's kernels run on this GPU", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  CHECK(has_loss_kernels(at::kCUDA));
}

TEST_CASE("Noised losses on CUDA choose the CPU's classes in every draw", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  at::manual_seed(3);
  for (const int64_t classes : {20, 100, 1081, 10000}) {
    for (const std::string k : {"1", "5", "15"}) {
      for (const std::string draws : {"1", "5", "10"}) {
        for (const std::string epsilon : {"0", "0.2", "5"}) {
          CAPTURE(classes, k, draws, epsilon);
          const std::vector<std::string> settings{"k=" + k, "num_draws=" + draws, "epsilon=" + epsilon};
          const at::Tensor scores = at::randn({16, classes}) * 3;
          const GpuResult cpu = compute("noised_topk", settings, scores);
          for (const LossMethod method : {LossMethod::kFast, LossMethod::kUnpruned}) {
            const GpuResult cuda = compute("noised_topk", settings, scores.cuda(), method);
            CHECK(at::equal(cuda.gradient, cpu.gradient));  // which holds what was chosen
            CHECK(test::relative_error(cuda.losses, cpu.losses) <= tolerance(at::kCUDA, at::kFloat));
          }
        }
      }
    }
  }
}

TEST_CASE("Smoothed and exact losses on CUDA agree with the CPU's", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  at::manual_seed(4);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const int64_t classes : {10, 100, 1081}) {
      for (const std::string k : {"1", "5", "8"}) {
        CAPTURE(dtype, classes, k);
        const at::Tensor scores = at::randn({8, classes}, dtype) * 3;
        for (const auto& [name, setting] :
             std::vector<std::pair<std::string, std::string>>{{"smoothed_topk_hinge", "tau=1"},
                                                              {"smoothed_topk_hinge", "tau=0.001"},
                                                              {"exact_topk", "epsilon=0.2"},
                                                              {"exact_topk", "epsilon=5"}}) {
          CAPTURE(name, setting);
          const GpuResult cpu = compute(name, {"k=" + k, setting}, scores);
          const GpuResult cuda = compute(name, {"k=" + k, setting}, scores.cuda());
          CHECK(at::allclose(cuda.losses, cpu.losses, 1e-5, 1e-5));
          CHECK(at::allclose(cuda.gradient, cpu.gradient, 1e-5, 1e-6));
        }
      }
    }
  }
}

#if defined(SETTRAIN_HAS_CUDA)
TEST_CASE("A CUDA graph of a noised loss reads the step from the device", "[gpu][capture]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  const at::Tensor scores = at::randn({8, 100}).cuda(), labels = at::arange(8, at::kLong).cuda();
  const at::Tensor step = at::zeros({1}, at::TensorOptions(at::kCUDA).dtype(at::kLong));
  const auto loss = test::build_loss("noised_topk", test::context_of(100), {"epsilon=1"});
  LossInput input = test::input_of(scores, labels);
  const auto of_step = [&](int64_t number) {
    LossInput plain = input;
    plain.noise_key.step = number;
    return (*loss)(plain).per_sample.cpu();
  };
  const at::Tensor first = of_step(0), third = of_step(2);
  input.noise_key.step_on_device = step.const_data_ptr<int64_t>();

  const c10::cuda::CUDAStreamGuard stream(c10::cuda::getStreamFromPool());
  at::cuda::CUDAGraph graph;
  graph.capture_begin();
  const at::Tensor captured = (*loss)(input).per_sample;
  graph.capture_end();
  graph.replay();
  CHECK(at::equal(captured.cpu(), first));
  step.fill_(2);
  graph.replay();
  CHECK(at::equal(captured.cpu(), third));
}
#endif

}  // namespace
}  // namespace settrain
