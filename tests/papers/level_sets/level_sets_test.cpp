#include "src/papers/level_sets/level_sets.h"

#include <cmath>

#include "src/core/error.h"
#include "tests/support/builtin_losses.h"
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

using Catch::Contains;
using test::builtin_losses;

namespace {

const PlaneGrid kGrid(5);  // 5 columns, 4 rows

LevelSetValues values_of(const std::string& loss, const std::vector<std::string>& settings,
                         const LevelSetDraws& draws = {}) {
  return level_set_values(builtin_losses(), {loss, settings}, kGrid, draws);
}

// Scores (2, 0, 0), (1, 0, 1) and, of the label, (0, 2, 0).
struct Three {
  double left, middle, top;
};

void check(const LevelSetValues& values, const Three& expected) {
  CHECK(values.losses[0] == Approx(expected.left).margin(1e-12));
  CHECK(values.losses[2] == Approx(expected.middle).margin(1e-12));
  CHECK(values.losses[3 * 5 + 2] == Approx(expected.top).margin(1e-12));
}

}  // namespace

TEST_CASE("Values at the corners and between them, by hand") {
  check(values_of("topk_zero_one", {"k=2"}), {0, 1, 0});  // the label ties at the left
  check(values_of("topk_zero_one", {"k=1"}), {1, 1, 0});
  check(values_of("topk_hinge", {"k=2"}), {1, 2, 0});
  check(values_of("topk_hinge", {"k=1"}), {3, 2, 0});
  check(values_of("topk_hinge_calibrated", {"k=2"}), {1, 1, 0});
  check(values_of("topk_hinge_calibrated", {"k=1"}), {1, 2, 0});
  check(values_of("topk_hinge_convex", {"k=2"}), {2, 2, 0});
  const double e = std::exp(1.0);
  check(values_of("cross_entropy", {}), {std::log(e * e + 2), std::log(2 * e + 1), std::log(e * e + 2) - 2});
}

TEST_CASE("The range is the triangle's, and rescales to [0, 1]") {
  const double e = std::exp(1.0);
  const LevelSetValues values = values_of("cross_entropy", {});
  CHECK(values.least == Approx(std::log(e * e + 2) - 2));
  CHECK(values.most == Approx(std::log(e * e + 2)));
  CHECK(values.rescaled(values.least) == 0);
  CHECK(values.rescaled(values.most) == 1);
  CHECK(values.rescaled(values.losses[2]) == Approx((std::log(2 * e + 1) - std::log(e * e + 2) + 2) / 2));
  CHECK(LevelSetValues{{}, 3, 3}.rescaled(3) == 0);
}

TEST_CASE("Off the triangle there are no values") {
  const LevelSetValues values = level_set_values(builtin_losses(), {"cross_entropy", {}}, PlaneGrid(21), {});
  CHECK(std::isnan(values.losses[17 * 21]));  // the upper left corner of the rectangle
  CHECK_FALSE(std::isnan(values.losses[17 * 21 + 10]));
  CHECK(std::isnan(values.losses.back()));
}

TEST_CASE("Without noise the noised losses are the calibrated hinge; the label's class is the rarest") {
  check(values_of("noised_topk", {"k=1", "epsilon=0", "margin=1"}), {1, 2, 0});
  // With the margin 1.5 and, for the scale, the factor 2.
  check(values_of("noised_topk_imbalanced", {"k=2", "epsilon=0", "max_margin=1.5", "scale=2"}), {3, 3, 0});
}

TEST_CASE("Noise is a function of the seed, and replications are averaged") {
  const std::vector<std::string> settings{"k=1", "epsilon=1", "num_draws=3"};
  const auto once = values_of("noised_topk", settings, {.seed = 7}).losses;
  CHECK(once[0] == values_of("noised_topk", settings, {.seed = 7}).losses[0]);
  CHECK(once[0] != values_of("noised_topk", settings, {.seed = 8}).losses[0]);

  // The exact expectation, as another loss computes it: scores (1, 0, 1), where the hinge is never at its kink.
  const double exact = values_of("exact_topk", {"k=1", "epsilon=1", "margin=9"}).losses[2];
  const auto error = [&](int64_t replications) {
    const std::vector<std::string> far_from_kink{"k=1", "epsilon=1", "num_draws=3", "margin=9"};
    return std::abs(values_of("noised_topk", far_from_kink, {.seed = 1, .replications = replications}).losses[2] -
                    exact);
  };
  CHECK(error(3000) < 0.03);  // 4 standard deviations
  CHECK(error(1) > error(3000));
}

TEST_CASE("Which losses draw noise") {
  CHECK(values_of("noised_topk", {"k=1"}).is_noised);
  CHECK(values_of("noised_topk_imbalanced", {"k=1"}).is_noised);
  CHECK_FALSE(values_of("topk_hinge", {"k=1"}).is_noised);
}

TEST_CASE("Unknown losses and keys are refused") {
  CHECK_THROWS_WITH(values_of("noised_topkk", {}), Contains("did you mean 'noised_topk'?"));
  CHECK_THROWS_WITH(values_of("topk_hinge", {"epsilon=1"}), Contains("loss.epsilon"));
  CHECK_THROWS_AS(values_of("topk_hinge", {"k=0"}), ConfigError);
}

TEST_CASE("Parameters read as a config") {
  CHECK(LevelSetPanel{"noised_topk", {"k=2", "epsilon=0.3"}}.parameters() == "k: 2, epsilon: 0.3");
  CHECK(LevelSetPanel{"cross_entropy", {}}.parameters().empty());
}
