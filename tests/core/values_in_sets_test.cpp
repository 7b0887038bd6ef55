#include "src/core/values_in_sets.h"

#include <limits>

#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("A product of K and samples just below a whole number counts as whole") {
  CHECK(values_in_sets(2.3, 10, 100) == 23);
  CHECK(values_in_sets(0.1, 30, 100) == 3);
  CHECK(values_in_sets(2.5, 3, 100) == 7);
  CHECK(values_in_sets(0.5, 1, 100) == 0);
  CHECK(values_in_sets(100, 3, 100) == 300);
  CHECK(values_in_sets(std::numeric_limits<double>::infinity(), 3, 100) == 300);
}

TEST_CASE("The product of K, or K - 1, with one decimal and any number of samples is that of integers") {
  for (int64_t tenths = 11; tenths < 100; ++tenths) {
    const double k = static_cast<double>(tenths) / 10;
    for (int64_t samples = 1; samples <= 256; ++samples) {
      if (values_in_sets(k, samples, 100) != tenths * samples / 10) FAIL_CHECK(k << ' ' << samples);
      if (values_in_sets(k - 1, samples, 100) != (tenths - 10) * samples / 10) FAIL_CHECK(k << " - 1 " << samples);
    }
  }
}

}  // namespace
}  // namespace settrain
