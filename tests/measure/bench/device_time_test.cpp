#include "src/measure/bench/device_time.h"

#include "tests/support/builtin_losses.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("on the CPU there is no time of the device apart") {
  int runs = 0;
  CHECK_FALSE(device_seconds([&] { ++runs; }, at::kCPU));
  CHECK(runs == 0);
  CHECK(measure_device_times(test::builtin_losses(), {}, at::kCPU).empty());
}

}  // namespace
}  // namespace settrain
