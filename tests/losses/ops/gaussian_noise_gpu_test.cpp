#include <ATen/ATen.h>

#include "losses/ops/smoothed_topk.h"
#include "tests/losses/build_loss.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"
#include "tests/support/tolerance.h"

namespace settrain {
namespace {

TEST_CASE("CUDA makes the CPU's noise bit for bit", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  const NoiseKey key{.seed = 4, .step = 17, .first_position = 32};
  for (int64_t draws = 1; draws <= 9; ++draws) {
    CAPTURE(draws);
    CHECK(at::equal(gaussian_noise(key, 33, draws, 1081, at::kCUDA).cpu(),
                    gaussian_noise(key, 33, draws, 1081, at::kCPU)));
  }
}

TEST_CASE("Every loss on CUDA is near the CPU's", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  at::manual_seed(3);
  const at::Tensor scores = at::randn({16, 40}), labels = at::arange(16, at::kLong);
  for (const LossEntry& entry : test::builtin_losses().entries()) {
    CAPTURE(entry.name);
    const auto loss = test::build_loss(entry.name, test::context_of(40));
    const at::Tensor on_cpu = (*loss)(test::input_of(scores, labels)).per_sample;
    const at::Tensor on_cuda = (*loss)(test::input_of(scores.cuda(), labels.cuda())).per_sample;
    CHECK(test::relative_error(on_cuda, on_cpu) <= tolerance(at::kCUDA, at::kFloat) * loss->score_scale());
  }
}

}  // namespace
}  // namespace settrain
