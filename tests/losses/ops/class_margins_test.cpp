#include "losses/ops/class_margins.h"

#include "src/core/error.h"
#include "tests/support/catch2.h"

namespace settrain {
namespace {

TEST_CASE("Margins fall with the fourth root of the counts") {
  const std::vector<int64_t> counts{16, 1, 81, 256};
  const std::vector<double> margins = class_margins(counts, 0.6);
  REQUIRE(margins.size() == 4);
  CHECK(margins[0] == Approx(0.3));
  CHECK(margins[1] == Approx(0.6));
  CHECK(margins[2] == Approx(0.2));
  CHECK(margins[3] == Approx(0.15));
}

TEST_CASE("The rarest class that has images, and every class without, has the largest margin") {
  const std::vector<int64_t> counts{0, 160, 10, 0};
  const std::vector<double> margins = class_margins(counts, 0.2);
  CHECK(margins == std::vector<double>{0.2, margins[1], 0.2, 0.2});
  CHECK(margins[1] == Approx(0.1));
  const std::vector<int64_t> none{0, 0};
  CHECK(class_margins(none, 0.2) == std::vector<double>{0.2, 0.2});
}

TEST_CASE("A negative count is refused") {
  const std::vector<int64_t> counts{3, -1};
  CHECK_THROWS_AS(class_margins(counts, 0.2), DataError);
}

}  // namespace
}  // namespace settrain
