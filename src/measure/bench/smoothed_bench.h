// The smoothed top-K hinge beside the algorithms of its paper: Berrada, Zisserman, Kumar, "Smooth Loss Functions for
// Deep Top-k Classification", ICLR 2018, tables 3 to 5. The algorithms are implemented from the paper's text, for
// comparison alone: what trains is losses/smoothed_topk_hinge.cpp.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "src/measure/bench/loss_bench.h"

namespace settrain {

/// The summation algorithm (Algorithm 3): the elementary symmetric polynomials of degrees 0 to `degree` of `e` [batch,
/// n], as [degree + 1, batch] in its dtype, adding an element at a time. No gradient.
at::Tensor by_summation(const at::Tensor& e, int64_t degree);

/// Divide and conquer (Algorithm 1) in logarithms (B.2.1): the logarithms of the same, of e = exp(x). [batch, n] to
/// [degree + 1, batch]. The polynomials 1/e_i + X are multiplied in pairs up to `degree`, and the product by all of e.
/// degree <= n. Its gradient is LibTorch's.
at::Tensor by_division(const at::Tensor& x, int64_t degree);

/// kAutograd and kCustomBackward are divide and conquer, with LibTorch's gradient and with Algorithm 2's; kOurs is the
/// loss of the registry.
enum class SmoothedAlgorithm { kSummation, kAutograd, kCustomBackward, kOurs };

/// The algorithms' names, in the order of the enum.
inline constexpr const char* kSmoothedAlgorithms[] = {"summation", "divide_and_conquer", "custom_backward", "settrain"};

/// [batch] the loss of smoothed_topk_hinge (eq. 10) in the dtype of `scores` [batch, classes], for `labels` [batch]
/// int64, by one of the paper's algorithms.
at::Tensor smoothed_hinge_by(SmoothedAlgorithm algorithm, const at::Tensor& scores, const at::Tensor& labels, int64_t k,
                             double tau, double alpha);

/// [batch, classes - 1] the other classes' scores over k tau: the input of the algorithms.
at::Tensor scaled_others(const at::Tensor& scores, const at::Tensor& labels, int64_t k, double tau);

/// Seconds of the forward and of the backward pass.
struct SmoothedSeconds {
  double forward = 0;
  std::optional<double> backward;  // none: the algorithm has no gradient
};

/// Medians over the runs of all rounds.
struct SmoothedTimes {
  std::string algorithm;
  int64_t classes;
  SmoothedSeconds seconds;
};

/// The loss in float32 with tau = 1, on the first of the scores' spreads, with 100, 1000 and 10,000 classes.
std::vector<SmoothedTimes> measure_smoothed(const LossRegistry& registry, const LossBenchOptions& options,
                                            at::Device device);

/// Whether the forward pass gives finite numbers.
struct SmoothedStability {
  std::string algorithm;
  at::ScalarType dtype;
  std::vector<bool> is_stable;  // for each of kStabilityTaus
  double smallest_tau = 0;      // power of ten, from 10 down to 1e-36, at which and above which all are finite; 0: none
};

/// The paper's six, and smaller ones.
inline constexpr double kStabilityTaus[] = {1e1, 1e0, 1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-9, 1e-12, 1e-18, 1e-24, 1e-36};

/// Scores of a model, [images, classes] floating point, and the images' labels, [images] int64.
struct ScoreBatch {
  at::Tensor scores, labels;
};

/// On `batch`, or without one on random scores.
std::vector<SmoothedStability> check_smoothed_stability(const LossRegistry& registry, const LossBenchOptions& options,
                                                        const std::optional<ScoreBatch>& batch, at::Device device);

/// Mean seconds over `runs` runs of one of kSmoothedAlgorithms, after one that is not counted, in float32 with tau = 1.
/// `what`: classes, batch, k. `after_run` is called after each run. Throws Interrupted where a signal asks to stop.
SmoothedSeconds time_smoothed(const LossRegistry& registry, const std::string& algorithm, const LossCase& what,
                              int64_t runs, at::Device device, const std::function<void()>& after_run);

/// Whether the forward pass of one of kSmoothedAlgorithms gives finite numbers at that temperature, on random scores of
/// that case.
bool is_smoothed_stable(const LossRegistry& registry, const std::string& algorithm, const LossCase& what, double tau,
                        at::ScalarType dtype, at::Device device);

}  // namespace settrain
