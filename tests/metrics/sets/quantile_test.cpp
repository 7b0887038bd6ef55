#include "metrics/sets/quantile.h"

#include <limits>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

constexpr double kNoQuantile = std::numeric_limits<double>::infinity();

TEST_CASE("the rank of the quantile is exact where a product is rounded") {
  CHECK(conformal_rank(9, 0.1) == 9);     // 10 * 0.9
  CHECK(conformal_rank(19, 0.05) == 19);  // 20 * 0.95
  CHECK(conformal_rank(99, 0.07) == 93);
  CHECK(conformal_rank(8, 0.1) == 9);  // 8.1
  CHECK(conformal_rank(0, 0.1) == 1);
  CHECK(conformal_rank(10, 0.999) == 1);
  for (int64_t hundredths = 1; hundredths < 100; ++hundredths) {
    for (int64_t n = 0; n < 2000; n += 7) {
      const int64_t exact = ((n + 1) * (100 - hundredths) + 99) / 100;
      if (conformal_rank(n, static_cast<double>(hundredths) / 100) != exact) {
        CAPTURE(n, hundredths);
        FAIL();
      }
    }
  }
}

TEST_CASE("the images that alpha needs are the fewest with a finite quantile") {
  CHECK(images_needed(0.1) == 9);
  CHECK(images_needed(0.05) == 19);
  CHECK(images_needed(0.5) == 1);
  CHECK(images_needed(0.9) == 1);
  CHECK(images_needed(1e-300) == 1000000000000000000);
  for (int64_t thousandths = 1; thousandths < 1000; ++thousandths) {
    const double alpha = static_cast<double>(thousandths) / 1000;
    const int64_t n = images_needed(alpha);
    CAPTURE(alpha, n);
    CHECK(conformal_rank(n, alpha) <= n);
    CHECK((n == 1 || conformal_rank(n - 1, alpha) > n - 1));
  }
}

TEST_CASE("the quantile is the m-th smallest score, infinite where there are fewer") {
  CHECK(conformal_quantile({3, 1, 2}, 0.5) == 2);
  CHECK(conformal_quantile({3, 1, 2}, 0.25) == 3);
  CHECK(conformal_quantile({3, 1, 2}, 0.24) == kNoQuantile);
  CHECK(conformal_quantile({3, 1, 2}, 0.9) == 1);
  CHECK(conformal_quantile({}, 0.5) == kNoQuantile);
}

TEST_CASE("groups have quantiles of their own") {
  CHECK(
      (conformal_quantiles({5, 1, 4, 2, 9}, {0, 1, 0, 1, -1}, 3, 0.4) == std::vector<DoubleDouble>{5, 2, kNoQuantile}));
}

}  // namespace
}  // namespace settrain
