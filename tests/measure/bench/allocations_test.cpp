#include "src/measure/bench/allocations.h"

#include <ATen/ATen.h>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr int64_t kMebi = 1 << 20;

TEST_CASE("the most that is held at a time counts, and what was there before does not") {
  at::Tensor before = at::empty({4 * kMebi}, at::kByte), kept;
  const int64_t peak = peak_allocations(at::kCPU, [&] {
    before.reset();
    at::empty({3 * kMebi}, at::kByte);
    kept = at::empty({kMebi}, at::kByte);
    at::empty({kMebi}, at::kByte);
  });
  CHECK(peak >= 3 * kMebi);
  CHECK(peak < 3 * kMebi + 4096);
}

TEST_CASE("the backward pass counts too") {
  const at::Tensor x = at::ones({kMebi / 4}).requires_grad_();
  const int64_t peak = peak_allocations(at::kCPU, [&] { x.exp().sum().backward(); });
  CHECK(peak >= 2 * kMebi);  // exp(x), kept for the gradient, and that
  CHECK(peak <= 4 * kMebi);
}

}  // namespace
}  // namespace settrain
