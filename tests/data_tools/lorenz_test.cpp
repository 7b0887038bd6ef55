#include "src/data_tools/lorenz.h"

#include "src/data_tools/stats.h"
#include "tests/support/catch2.h"

using namespace settrain;

namespace {

using Counts = std::vector<int64_t>;

// 1 minus twice the area under the curve, by trapezoids: the definition that gini() rearranges.
double gini_by_area(const Counts& counts) {
  const auto curve = lorenz_curve(counts);
  double area = 0;
  for (size_t i = 1; i < curve.size(); ++i) area += (curve[i - 1] + curve[i]) / 2 / static_cast<double>(counts.size());
  return 1 - 2 * area;
}

}  // namespace

TEST_CASE("The Lorenz curve of four classes, by hand") {
  // Sorted 1, 2, 3, 10: sums 1, 3, 6, 16.
  CHECK(lorenz_curve({3, 10, 1, 2}) == std::vector<double>{0, 1.0 / 16, 3.0 / 16, 6.0 / 16, 1});
  CHECK(lorenz_curve({0, 0, 5}) == std::vector<double>{0, 0, 0, 1});
  CHECK(lorenz_curve({7}) == std::vector<double>{0, 1});
  CHECK(lorenz_curve({0, 0}) == std::vector<double>{0, 0.5, 1});
  CHECK(lorenz_curve({}) == std::vector<double>{0});
}

TEST_CASE("Gini's coefficient, by hand and as an area") {
  // (-3 * 1 - 1 * 2 + 1 * 3 + 3 * 10) / (4 * 16)
  CHECK(gini({3, 10, 1, 2}) == Approx(28.0 / 64));
  CHECK(gini({5, 5, 5}) == 0);
  CHECK(gini({0, 0, 0, 9}) == Approx(0.75));  // 1 - 1/n
  CHECK(gini({1, 3}) == Approx(0.25));
  CHECK(gini({4}) == 0);
  CHECK(gini({0, 0}) == 0);
  CHECK(gini({}) == 0);
  for (const Counts& counts : {Counts{3, 10, 1, 2}, Counts{1, 1, 2, 3, 5, 8, 13}, Counts{0, 4, 4}, Counts{6}}) {
    CHECK(gini(counts) == Approx(gini_by_area(counts)).margin(1e-12));
  }
}

TEST_CASE("The share of the largest classes") {
  CHECK(share_of_largest({10, 1, 2, 3, 4}, 0.2) == Approx(0.5));  // one of five
  CHECK(share_of_largest({5, 5, 5, 5, 5, 5, 5, 5, 5, 5}, 0.2) == Approx(0.2));
  // A fifth of four classes is 0.8 of the largest.
  CHECK(share_of_largest({3, 10, 1, 2}, 0.2) == Approx(0.8 * 10 / 16));
  CHECK(share_of_largest({7}, 0.2) == Approx(0.2));
  CHECK(share_of_largest({1, 2}, 0) == 0);
  CHECK(share_of_largest({1, 2}, 1) == 1);
  CHECK(share_of_largest({0, 0}, 0.5) == Approx(0.5));
}

TEST_CASE("Least, median, mean and greatest") {
  const Summary odd = summarise({9, 1, 2}), even = summarise({4, 1, 2, 3}), none = summarise({});
  CHECK(odd.min == 1);
  CHECK(odd.median == 2);
  CHECK(odd.mean == 4);
  CHECK(odd.max == 9);
  CHECK(even.median == 2.5);
  CHECK(even.mean == 2.5);
  CHECK(none.max == 0);
}
