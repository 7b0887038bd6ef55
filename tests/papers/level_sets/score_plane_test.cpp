#include "src/papers/level_sets/score_plane.h"

#include <cmath>

#include "tests/support/catch2.h"

using namespace settrain;

namespace {

void check_scores(PlanePoint point, PlaneScores expected) {
  const PlaneScores scores = plane_scores(point);
  for (size_t j = 0; j < 3; ++j) CHECK(scores[j] == Approx(expected[j]).margin(1e-12));
}

}  // namespace

TEST_CASE("One class has the score 2 at each corner, the label on top") {
  const double height = std::sqrt(3.0) / 2;
  check_scores({0, 0}, {2, 0, 0});
  check_scores({1, 0}, {0, 0, 2});
  check_scores({0.5, height}, {0, 2, 0});
  check_scores({0.5, 0}, {1, 0, 1});
  check_scores({0.25, height / 2}, {1, 1, 0});
  check_scores({0.5, height / 3}, {2.0 / 3, 2.0 / 3, 2.0 / 3});
}

TEST_CASE("A grid holds the corners, and its points are nearly as far apart in both directions") {
  const PlaneGrid grid(101);
  CHECK(grid.columns == 101);
  CHECK(grid.rows == 88);  // 86.6 steps of 0.01 would be the height
  CHECK(in_triangle(plane_scores(grid.at(0, 0))));
  CHECK(in_triangle(plane_scores(grid.at(100, 0))));
  CHECK(in_triangle(plane_scores(grid.at(50, 87))));
  CHECK_FALSE(in_triangle(plane_scores(grid.at(49, 87))));
  CHECK(grid.at(50, 0).x == 0.5);
  CHECK(grid.at(0, 1).y == Approx(0.01).epsilon(0.01));
}

TEST_CASE("Near are the triangle and the cells at its sides") {
  const PlaneGrid grid(101);
  const auto is_near = [&](int64_t column, int64_t row) { return grid.is_near(plane_scores(grid.at(column, row))); };
  CHECK(is_near(49, 87));
  CHECK_FALSE(is_near(40, 87));
  CHECK_FALSE(is_near(0, 10));
  // Around each point of the triangle all corners of its cell are near.
  for (int64_t row = 0; row + 1 < grid.rows; ++row) {
    for (int64_t column = 0; column + 1 < grid.columns; ++column) {
      int64_t inside = 0, near = 0;
      for (const auto& [c, r] : {std::pair{column, row}, {column + 1, row}, {column, row + 1}, {column + 1, row + 1}}) {
        inside += in_triangle(plane_scores(grid.at(c, r))) ? 1 : 0;
        near += is_near(c, r) ? 1 : 0;
      }
      if (inside > 0 && near < 4) FAIL_CHECK("column " << column << ", row " << row);
    }
  }
}
