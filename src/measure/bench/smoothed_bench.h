// The smoothed top-K hinge beside the algorithms of its paper: ICLR 2018, tables 3 to 5.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/measure/bench/loss_bench.h"

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

/// The algorithms by name: "summation", "divide_and_conquer" (backward by LibTorch's autograd), "custom_backward" (the
/// same with Algorithm 2), "settrain".
inline constexpr const char* kSmoothedAlgorithms[] = {"summation", "divide_and_conquer", "custom_backward", "settrain"};

/// Mean seconds over `runs` runs, after one that is not counted, of the forward and of the backward pass.
struct SmoothedSeconds {
  double forward = 0;
  std::optional<double> backward;  // none: it has no gradient
};

/// Of one algorithm alone, in float32 with tau = 1. `what`: classes, batch, k. `after_run` is called after each run.
/// Throws Interrupted where a signal asks to stop.
SmoothedSeconds time_smoothed(const LossRegistry& registry, const std::string& algorithm, const LossCase& what,
                              int64_t runs, at::Device device, const std::function<void()>& after_run);

/// Whether its forward pass gives numbers at that temperature.
bool is_smoothed_stable(const LossRegistry& registry, const std::string& algorithm, const LossCase& what, double tau,
                        at::ScalarType dtype, at::Device device);

}  // namespace settrain
