// The plane of scores that level sets are drawn on: three classes whose scores add up to 2.
#pragma once

#include <array>
#include <cstdint>

namespace settrain {

/// The triangle 2 * Delta_3 of Garcin et al. (ICML 2022, Figures 1 and 4 to 6): scores s >= 0 of three classes with
/// s_1 + s_2 + s_3 = 2. At its corners one class has the score 2 and the others 0: class 1 at the lower left (0, 0),
/// class 3 at the lower right (1, 0), and class 2, the label y, on top (1/2, sqrt(3)/2).
using PlaneScores = std::array<double, 3>;

constexpr int64_t kPlaneClasses = 3;
constexpr int64_t kPlaneLabel = 1;  // class 2, counted from 0
constexpr double kPlaneTotal = 2.0;

/// A point of the plane, in sides of the triangle from its lower left corner.
struct PlanePoint {
  double x, y;
};

/// The scores at a point; outside of the triangle some are negative.
PlaneScores plane_scores(PlanePoint point);

/// Whether no score is below 0, but for rounding.
bool in_triangle(const PlaneScores& scores);

/// Points in rows and columns over the rectangle around the triangle: the first and the last column hold its lower
/// corners, the first row its lower side, the last row its top.
struct PlaneGrid {
  int64_t columns, rows;

  /// As many columns as `size` [3 or more], and rows as far apart as the columns, as nearly as may be.
  explicit PlaneGrid(int64_t size);

  PlanePoint at(int64_t column, int64_t row) const;

  /// Whether a point is in the triangle, or so near that lines between the grid's points reach the triangle's sides.
  bool is_near(const PlaneScores& scores) const;
};

}  // namespace settrain
