// The smoothed top-K hinge beside the algorithms of its paper: ICLR 2018, tables 3 to 5.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/bench/loss_bench.h"

namespace settrain {

/// Medians over the runs of all rounds.
struct SmoothedTimes {
  std::string algorithm;
  int64_t classes;
  double forward = 0;              // seconds
  std::optional<double> backward;  // none: it has no gradient
};

/// The loss in float32 with tau = 1, on the first of the scores' spreads, with 100, 1000 and 10,000 classes.
std::vector<SmoothedTimes> measure_smoothed(const LossRegistry& registry, const LossBenchOptions& options,
                                            at::Device device);

/// Whether the forward pass gives numbers, infinity being none.
struct SmoothedStability {
  std::string algorithm;
  at::ScalarType dtype;
  std::vector<bool> is_stable;  // for each of kStabilityTaus
};

inline constexpr double kStabilityTaus[] = {1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4};

std::vector<SmoothedStability> check_smoothed_stability(const LossRegistry& registry, const LossBenchOptions& options,
                                                        at::Device device);

}  // namespace settrain
