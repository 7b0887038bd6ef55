#include <ATen/Context.h>

#include "src/measure/bench/loss_bench.h"
#include "tests/support/builtin_losses.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

TEST_CASE("the losses that have kernels are captured, and take longer than a small kernel", "[gpu][capture]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  LossBenchOptions options;
  options.losses = {"noised_topk", "smoothed_topk_hinge"};
  const std::vector<DeviceTime> times = measure_device_times(test::builtin_losses(), options, at::kCUDA);
  REQUIRE(times.size() == 3);
  CHECK(times[0].seconds > 0);
  for (size_t i = 1; i < times.size(); ++i) {
    CAPTURE(times[i].work);
    CHECK(times[i].seconds > times[0].seconds);
    CHECK(times[i].seconds < 1e-3);
  }
}

}  // namespace
}  // namespace settrain
