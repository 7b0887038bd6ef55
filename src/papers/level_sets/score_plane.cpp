#include "src/papers/level_sets/score_plane.h"

#include <algorithm>
#include <cmath>

namespace settrain {
namespace {

const double kHeight = std::sqrt(3.0) / 2;

double least(const PlaneScores& scores) {
  return *std::min_element(scores.begin(), scores.end());
}

}  // namespace

PlaneScores plane_scores(PlanePoint point) {
  const double top = point.y / kHeight, right = point.x - top / 2;
  return {kPlaneTotal * (1 - top - right), kPlaneTotal * top, kPlaneTotal * right};
}

bool in_triangle(const PlaneScores& scores) {
  return least(scores) >= -1e-12;
}

PlaneGrid::PlaneGrid(int64_t size) : columns(size), rows(1 + std::lround(kHeight * static_cast<double>(size - 1))) {}

PlanePoint PlaneGrid::at(int64_t column, int64_t row) const {
  return {static_cast<double>(column) / static_cast<double>(columns - 1),
          kHeight * static_cast<double>(row) / static_cast<double>(rows - 1)};
}

bool PlaneGrid::is_near(const PlaneScores& scores) const {
  // A cell further to the side and one further down make one and a half.
  return least(scores) >= -2 * kPlaneTotal / static_cast<double>(columns - 1);
}

}  // namespace settrain
