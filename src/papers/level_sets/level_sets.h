// Level sets of losses over the plane of scores: three classes whose scores add up to 2. The values of a loss there,
// the losses that each figure shows, and their pictures.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "losses/loss.h"
#include "src/plot/pictures.h"

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

/// A loss with its parameters, as a config names them.
struct LevelSetPanel {
  std::string loss;                   // "noised_topk"
  std::vector<std::string> settings;  // of the section `loss`: "epsilon=0.3"

  /// "k: 2, epsilon: 0.3", as a config would have it.
  std::string parameters() const;
};

/// How noise is drawn, for the losses that draw some.
struct LevelSetDraws {
  uint64_t seed = 0;
  int64_t replications = 1;  // evaluations, each with noise of its own, whose mean is taken
};

/// A loss at every point of a grid.
struct LevelSetValues {
  std::vector<double> losses;  // [rows * columns], a row after the other; NaN where a point is not near the triangle
  double least, most;          // in the triangle
  bool is_noised = false;      // whether the loss draws random numbers

  /// (loss - least) / (most - least): from 0 to 1 in the triangle.
  double rescaled(double loss) const { return most > least ? (loss - least) / (most - least) : 0.0; }
};

/// Evaluates the loss, in float64 on the CPU, for the label kPlaneLabel at all points of the grid near the triangle as
/// one batch. Losses with the key num_draws draw their noise themselves, by (seed, replication, point); each point has
/// noise of its own. Others are evaluated once. Throws ConfigError where there is no loss or key of that name.
LevelSetValues level_set_values(const LossRegistry& registry, const LevelSetPanel& panel, const PlaneGrid& grid,
                                const LevelSetDraws& draws);

/// Panels in rows and columns, a row after the other.
struct LevelSetFigure {
  std::string number;  // the figure's in ICML 2022
  std::string name;    // of the files: "level-sets-k2"
  std::string title;
  size_t columns;
  std::vector<LevelSetPanel> panels;
  int64_t replications;  // of the noised losses, by default

  size_t rows() const { return panels.size() / columns; }
};

/// Figures 1 (K = 2), 4 (draws), 5 (epsilon) and 6 (K = 1) of Garcin et al., ICML 2022.
std::vector<LevelSetFigure> level_set_figures();

/// The data for gnuplot, panel after panel with two blank lines between: a comment with the loss, then a line for each
/// point of the grid, "x y s_1 s_y s_3 loss level", rows parted by blank lines. level is the loss rescaled to [0, 1]
/// over the triangle; loss and level are nan off the triangle.
std::string level_set_data(const LevelSetFigure& figure, const PlaneGrid& grid,
                           const std::vector<LevelSetValues>& values);

/// All of the picture but its data, level_set_data().
Picture level_set_picture(const LevelSetFigure& figure, const std::vector<LevelSetValues>& values,
                          const LevelSetDraws& draws);

struct LevelSetRequest {
  std::filesystem::path folder;
  int64_t size = 101;  // points along a side of the triangle, 3 or more
  uint64_t seed = 0;
  std::optional<int64_t> replications = {};  // in place of each figure's own
};

/// Writes NAME.dat and NAME.gp of every figure to the folder, which is made where it is not there, and then draws
/// NAME.svg and NAME.png with gnuplot. Gives the files' paths. Throws RunError where a file cannot be written; Error,
/// saying that data and scripts are there, where gnuplot is missing or fails. No picture is left half drawn.
std::vector<std::filesystem::path> draw_level_sets(const LossRegistry& registry,
                                                   const std::vector<LevelSetFigure>& figures,
                                                   const LevelSetRequest& request);

}  // namespace settrain
