#include <ATen/ATen.h>

#include "metrics/average_k_threshold.h"
#include "tests/support/catch2.h"
#include "tests/support/skip.h"

namespace settrain {
namespace {

TEST_CASE("order statistics and set sizes on a GPU are the CPU's", "[gpu]") {
  SKIP_UNLESS(at::hasCUDA(), "no CUDA device");
  at::manual_seed(5);
  for (const at::ScalarType dtype : {at::kFloat, at::kDouble}) {
    for (const at::Tensor& values :
         {at::softmax(3 * at::randn({500, 100}, dtype), 1), at::randint(5, {500, 100}, dtype)}) {
      const std::vector<int64_t> ranks{499, 500, 0, 49999, 500, 2500};
      CHECK(order_statistics(values.to(at::kCUDA), ranks) == order_statistics(values, ranks));
      const std::vector<double> lambdas{0.5, 0.01, 2, 3};
      const at::Tensor sizes = set_sizes(values.to(at::kCUDA), lambdas, Ties::kStrict);
      CHECK(sizes.cpu().equal(set_sizes(values, lambdas, Ties::kStrict)));
    }
  }
}

}  // namespace
}  // namespace settrain
