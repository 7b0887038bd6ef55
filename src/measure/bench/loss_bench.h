// How long losses take: beside each other, on the device alone, and as a share of a training step.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "src/measure/bench/loss_subject.h"
#include "src/measure/bench/timing.h"
#include "src/train/experiment_schema.h"

namespace settrain {

/// The measurements of one case.
struct LossTimes {
  LossCase subject;
  std::vector<double> seconds;       // of a step, in each round
  std::vector<double> to_reference;  // over cross-entropy's of the same size, in the same round
  double memory = 0;                 // the most that a step takes, over that of the scores
  std::optional<double> drawn;       // classes of a row that noise is drawn for, on average
};

/// The cases to measure, and how to measure them.
struct LossBenchOptions {
  LossCase base;                                     // its sizes and draws
  std::vector<double> epsilons{0.2}, scores_sds{3};  // the first of each for all losses, all for those with noise
  std::vector<std::string> losses;                   // none: all that have a gradient
  TurnOptions turns;
};

/// The losses whose cost is to be watched as K and the classes grow, and beside a whole training step.
inline constexpr const char* kCostlyLosses[] = {"noised_topk", "smoothed_topk_hinge", "exact_topk"};

/// Throws ConfigError where a size does not suit another, or a loss is not there or has no gradient; Error where the
/// device has not the memory.
void check(const LossRegistry& registry, const LossBenchOptions& options, at::Device device);

/// Every loss in each of the ways that it can be computed, and cross-entropy first.
std::vector<LossTimes> measure_losses(const LossRegistry& registry, const LossBenchOptions& options, at::Device device);

/// Losses with noise, for every epsilon and every spread of the scores; empty where there is one of each.
std::vector<LossTimes> measure_scores(const LossRegistry& registry, const LossBenchOptions& options, at::Device device);

/// kCostlyLosses with K = 1, 5, 10, 50, 100 and then with 100, 1000 and 10,000 classes.
std::vector<LossTimes> measure_growth_in_k(const LossRegistry& registry, const LossBenchOptions& options,
                                           at::Device device);
std::vector<LossTimes> measure_growth_in_classes(const LossRegistry& registry, const LossBenchOptions& options,
                                                 at::Device device);

struct DeviceTime {
  std::string work;
  double seconds;
};

/// A small kernel, which is the floor, and the forward and backward pass of the losses that have kernels, as far as
/// they are asked for. Empty where nothing can be captured.
std::vector<DeviceTime> measure_device_times(const LossRegistry& registry, const LossBenchOptions& options,
                                             at::Device device);

/// The time that one loss takes beyond cross-entropy's, as a share of the whole step with cross-entropy.
struct StepShare {
  std::string loss;
  std::vector<double> seconds;  // of forward and backward, in each round
  std::vector<double> shares;   // in each round
};

struct StepShares {
  int64_t batch = 0, classes = 0;
  std::vector<double> step_seconds;  // in each round
  std::vector<StepShare> losses;
};

/// Steps of `model` on one batch of random images of the size it was made for, and losses on scores of as many rows
/// and classes, all in turns: kCostlyLosses, as far as they are asked for. From then on the process computes as in
/// training. Throws ConfigError where `model` is not there.
StepShares measure_step_shares(const Registries& registries, const LossBenchOptions& options, const std::string& model,
                               int64_t batch, int64_t classes, at::Device device);

/// The times of that case computed in another way, or null.
const LossTimes* find(const std::vector<LossTimes>& all, LossCase subject, LossMethod method);

/// "fast", "unpruned" or "plain".
const char* name_of(LossMethod method);

}  // namespace settrain
