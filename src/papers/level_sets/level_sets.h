// The values of losses over the plane of scores.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "losses/loss.h"
#include "src/papers/level_sets/score_plane.h"

namespace settrain {

/// A loss with its parameters, as a config names them.
struct LevelSetPanel {
  std::string loss;                   // "noised_topk"
  std::vector<std::string> settings;  // of the section `loss`: "epsilon=0.3"

  /// "k: 2, epsilon: 0.3", as a config would have it.
  std::string parameters() const;
};

/// What becomes of the noise that losses draw.
struct LevelSetDraws {
  uint64_t seed = 0;
  int64_t replications = 1;  // evaluations, each with noise of its own, whose mean is taken
};

/// A loss at every point of a grid.
struct LevelSetValues {
  std::vector<double> losses;  // [rows * columns], a row after the other; NaN where a point is not near the triangle
  double least, most;          // in the triangle

  /// (loss - least) / (most - least): from 0 to 1 in the triangle.
  double rescaled(double loss) const { return most > least ? (loss - least) / (most - least) : 0.0; }
};

/// Evaluates the loss, in float64 on the CPU, for the label kPlaneLabel at all points of the grid near the triangle as
/// one batch. Losses with the key num_draws draw their noise themselves, by (seed, replication, point); each point has
/// noise of its own. Others are evaluated once. Throws ConfigError where there is no loss or key of that name.
LevelSetValues level_set_values(const LossRegistry& registry, const LevelSetPanel& panel, const PlaneGrid& grid,
                                const LevelSetDraws& draws);

/// Whether the loss draws random numbers.
bool draws_noise(const LossRegistry& registry, const LevelSetPanel& panel);

}  // namespace settrain
